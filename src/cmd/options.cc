#include "cmd/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "cmd/arguments.h"
#include "cmd/command.h"

namespace ndp::cmd {
namespace {

std::string Names(const config::Option& option) {
  std::string names = fmt::format("--{}", option.flag);
  for (std::string_view alias : option.aliases) {
    names += fmt::format(",{}{}", alias.size() == 1 ? "-" : "--", alias);
  }
  return names;
}

std::string Help(const config::Option& option, config::Program program) {
  std::string help(option.help);
  if (!option.bind.choices.empty())
    help += fmt::format(" ({})", fmt::join(option.bind.choices, ", "));
  if (!option.DefaultText().empty()) help += fmt::format(" [{}]", option.DefaultText());
  if (const auto env = option.EnvOf(program); !env.empty())
    help += fmt::format(" [${}]", fmt::join(env, ", $"));
  return help;
}

// The option that a mistyped one may have meant, for the message.
std::string DidYouMean(config::Program program, const std::vector<std::string>& args) {
  std::vector<std::string_view> flags;
  for (const config::Option* option : config::OptionsOf(program)) {
    if (!option->flag.empty()) flags.push_back(option->flag);
    flags.insert(flags.end(), option->aliases.begin(), option->aliases.end());
  }
  for (std::string_view arg : args) {
    if (!arg.starts_with("--")) continue;
    const std::string_view flag =
        arg.substr(2, arg.find('=') == std::string_view::npos ? arg.npos : arg.find('=') - 2);
    if (std::ranges::find(flags, flag) != flags.end() || flag == "help" || flag == "version")
      continue;
    if (auto near = Nearest(flag, flags))
      return fmt::format("unknown option --{}: did you mean --{}?", flag, *near);
    return fmt::format("unknown option --{}", flag);
  }
  return "";
}

// `--flag false`: a boolean alone is true, and what follows stands for itself.
std::string ValueApart(config::Program program, const std::vector<std::string>& args) {
  static constexpr std::string_view kValues[] = {"true", "false", "1", "0", "t", "f"};
  for (std::size_t i = 1; i < args.size(); ++i) {
    if (std::ranges::find(kValues, ToLower(args[i])) == std::end(kValues)) continue;
    const std::string& before = args[i - 1];
    for (const config::Option* option : config::OptionsOf(program)) {
      if (option->bind.kind != config::Kind::kBool || option->flag.empty()) continue;
      if (before != fmt::format("--{}", option->flag)) continue;
      return fmt::format("{0} {1}: a boolean takes its value behind an equals sign: {0}={1}",
                         before, args[i]);
    }
  }
  return "";
}

// As CLI11 wants them. It takes "--option=" for an option without a value, but an empty value
// counts: it becomes two arguments.
std::vector<std::string> Reversed(const std::vector<std::string>& args) {
  std::vector<std::string> reversed;
  for (auto arg = args.rbegin(); arg != args.rend(); ++arg) {
    if (arg->starts_with("--") && arg->find('=') == arg->size() - 1) {
      reversed.emplace_back("");
      reversed.push_back(arg->substr(0, arg->size() - 1));
    } else {
      reversed.push_back(*arg);
    }
  }
  return reversed;
}

}  // namespace

Parsed ParseCommandLine(config::Program program, const std::string& name,
                        const std::vector<std::string>& args) {
  CLI::App app(VersionText(), name);
  app.set_version_flag("--version", VersionText());
  app.get_formatter()->column_width(36);
  std::vector<std::pair<const config::Option*, CLI::Option*>> made;
  for (const config::Option* option : config::OptionsOf(program)) {
    if (option->flag.empty()) continue;
    CLI::Option* cli = nullptr;
    if (option->bind.kind == config::Kind::kBool) {
      cli = app.add_flag(Names(*option));
    } else {
      cli = app.add_option(Names(*option))
                ->type_name(fmt::format("<{}>", config::KindName(option->bind.kind)));
      // An empty value counts: --kubelet-socket= means "do not register".
      cli->expected(1)->allow_extra_args(false);
      if (option->bind.kind == config::Kind::kList)
        cli->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    if (option->bind.kind != config::Kind::kList)
      cli->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    cli->description(Help(*option, program));
    made.emplace_back(option, cli);
  }
  Parsed parsed;
  try {
    app.parse(Reversed(args));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      parsed.exit = app.exit(error);
      return parsed;
    }
    std::string hint = DidYouMean(program, args);
    if (hint.empty()) hint = ValueApart(program, args);
    parsed.exit = RefuseArguments(name, hint.empty() ? error.what() : hint);
    return parsed;
  }
  for (const auto& [option, cli] : made) {
    if (cli->count() > 0) parsed.given[std::string(option->id())] = cli->results();
  }
  return parsed;
}

}  // namespace ndp::cmd
