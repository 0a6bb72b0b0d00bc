#include "cmd/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/one_line.h"
#include "base/path.h"
#include "cmd/command.h"

namespace ndp::cmd {

namespace {

// With the sub-command that was given: "ndp cdi validate".
std::string CommandOf(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app.get_name()
                       : fmt::format("{} {}", app.get_name(), given.front()->get_name());
}

}  // namespace

int RefuseArguments(const std::string& name, std::string_view why) {
  fmt::print(stderr, "{0}: {1}\n{0} --help lists the options\n", name, OneLine(why));
  return kUsage;
}

Arguments::Arguments(const std::string& name, const std::string& description)
    : own_(std::make_unique<CLI::App>(description, name)), app_(own_.get()) {}

Arguments::Arguments(CLI::App& app) : app_(&app) {}

Arguments::~Arguments() = default;
Arguments::Arguments(Arguments&&) noexcept = default;

void Arguments::Option(const std::string& flag, std::string& value, const std::string& help,
                       const std::vector<std::string>& choices) {
  CLI::Option* option = app_->add_option(flag, value, help);
  if (!choices.empty()) option->check(CLI::IsMember(choices));
}

void Arguments::Path(const std::string& flag, std::string& value, const std::string& help) {
  app_->add_option(flag, value, help)->transform([](const std::string& path) {
    return AbsoluteFrom(path);
  });
}

void Arguments::OptionOrEnv(const std::string& flag, const std::string& variable,
                            std::string& value, const std::string& help) {
  app_->add_option(flag, value, help)->envname(variable)->capture_default_str();
}

void Arguments::List(const std::string& flag, std::vector<std::string>& values,
                     const std::string& help) {
  app_->add_option(flag, values, help)->delimiter(',');
}

void Arguments::Flag(const std::string& flag, bool& value, const std::string& help) {
  app_->add_flag(flag, value, help);
}

void Arguments::Required(const std::string& name, std::string& value, const std::string& help) {
  app_->add_option(name, value, help)->required();
}

Arguments Arguments::SubCommand(const std::string& name, const std::string& description) {
  CLI::App* sub = app_->add_subcommand(name, description);
  sub->fallthrough();
  return Arguments(*sub);
}

void Arguments::RequireSubCommand() { app_->require_subcommand(1); }

bool Arguments::chosen() const { return app_->parsed(); }

std::optional<int> Arguments::Parse(const std::vector<std::string>& args) {
  try {
    // CLI11 takes the arguments last one first.
    app_->parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error) == 0 ? kOk : kUsage;
    return RefuseArguments(CommandOf(*app_), error.what());
  }
  return std::nullopt;
}

}  // namespace ndp::cmd
