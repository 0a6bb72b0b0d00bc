#include "sim_cmd/command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <concepts>
#include <cstdio>
#include <limits>

namespace ndp::sim_cmd {

Option& Option::Required() {
  option_->required();
  return *this;
}

Option& Option::Excludes(const Option& other) {
  option_->excludes(other.raw());
  return *this;
}

Option& Option::Range(std::uint64_t lowest, std::uint64_t highest) {
  option_->check(CLI::Range(lowest, highest));
  return *this;
}

Command Command::Sub(const std::string& name, const std::string& help) {
  return {*app_.add_subcommand(name, help), exit_code_};
}

void Command::Footer(const std::string& text) { app_.footer(text); }

void Command::RequireSub() { app_.require_subcommand(1); }

namespace {

template <typename T>
struct Plain {
  using Type = T;
};
template <typename T>
struct Plain<std::optional<T>> {
  using Type = T;
};
template <typename T>
struct Plain<std::vector<T>> {
  using Type = T;
};

// CLI11's own words are "Could not convert".
template <std::integral T>
std::string CheckNumber(const std::string& text) {
  T number{};
  if (CLI::detail::integral_conversion(text, number)) return "";
  return fmt::format("\"{}\" must be a number from {} to {}", text, std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max());
}

}  // namespace

template <typename T>
Option Command::Add(const std::string& name, T& value, const std::string& help) {
  CLI::Option* option = app_.add_option(name, value, help);
  using Element = Plain<T>::Type;
  // Before a check of the range.
  if constexpr (std::integral<Element>) option->check(CheckNumber<Element>);
  return Option(option);
}
template Option Command::Add(const std::string&, std::string&, const std::string&);
template Option Command::Add(const std::string&, std::uint32_t&, const std::string&);
template Option Command::Add(const std::string&, std::uint64_t&, const std::string&);
template Option Command::Add(const std::string&, std::optional<int>&, const std::string&);
template Option Command::Add(const std::string&, std::optional<std::uint32_t>&, const std::string&);
template Option Command::Add(const std::string&, std::optional<std::uint64_t>&, const std::string&);
template Option Command::Add(const std::string&, std::optional<std::string>&, const std::string&);
template Option Command::Add(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::Add(const std::string&, std::vector<std::uint32_t>&, const std::string&);

Option Command::Flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_.add_flag(name, value, help));
}

void Command::ExactlyOne(std::initializer_list<Option> options) {
  auto* group = app_.add_option_group("exactly one of");
  for (const Option& option : options) group->add_option(option.raw());
  group->require_option(1);
}

namespace {

// "ndp-sim driver gone".
std::string FullName(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent != nullptr;
       parent = parent->get_parent()) {
    name.insert(0, parent->get_name() + " ");
  }
  return name;
}

// The sub-command that the command line is about, as far as it was read.
const CLI::App& Named(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

}  // namespace

void Command::OnRun(std::function<Status()> run) {
  app_.callback([&app = app_, &exit_code = exit_code_, run = std::move(run)] {
    const Status status = run();
    if (status.ok()) return;
    std::fprintf(stderr, "%s: %s\n", FullName(app).c_str(), status.error().message().c_str());
    exit_code = status.error().code() == Code::kInvalidArgument ? 2 : 1;
  });
}

int RunProgram(const char* name, const char* help, const char* version,
               std::initializer_list<void (*)(Command& program)> add, int argc, char** argv) {
  CLI::App app(help, name);
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(name) + " " + version);
  int exit_code = 0;
  Command program(app, exit_code);
  try {
    for (const auto describe : add) describe(program);
    const auto named = [&](CLI::App* sub) { return sub->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(named).empty()) {
      std::fprintf(stderr, "%s: no sub-command \"%s\" (--help shows what there is)\n", name,
                   argv[1]);
      return 2;
    }
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help and --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s (--help shows what there is)\n", FullName(Named(app)).c_str(),
                 error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
  return exit_code;
}

}  // namespace ndp::sim_cmd
