// The command lines of the small commands: options with their help, a message and a status where
// one is wrong. Wraps CLI11, whose header is compiled in one place. (The options of the settings
// have a table of their own: options.h.)
//
//   Arguments arguments(name, "Ends an `ndp release`.");
//   arguments.Option("--for", text, "resume by itself after this time");
//   if (const auto status = arguments.Parse(args)) return *status;
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace ndp::cmd {

// Says in one line on standard error what is wrong with a command line, and where help is. Returns
// the exit status for it.
int RefuseArguments(const std::string& name, std::string_view why);

class Arguments {
 public:
  // `name` is what messages begin with: "ndp health".
  Arguments(const std::string& name, const std::string& description);
  ~Arguments();
  Arguments(Arguments&&) noexcept;

  // Values are written by Parse, so the variables outlive it. `choices`: what is allowed; empty:
  // all.
  void Option(const std::string& flag, std::string& value, const std::string& help,
              const std::vector<std::string>& choices = {});
  // A relative path becomes absolute.
  void Path(const std::string& flag, std::string& value, const std::string& help);
  void OptionOrEnv(const std::string& flag, const std::string& variable, std::string& value,
                   const std::string& help);
  void List(const std::string& flag, std::vector<std::string>& values, const std::string& help);
  void Flag(const std::string& flag, bool& value, const std::string& help);
  void Required(const std::string& name, std::string& value, const std::string& help);

  // Lives as long as this; options that it does not know are looked for here.
  Arguments SubCommand(const std::string& name, const std::string& description);
  void RequireSubCommand();
  bool chosen() const;  // this sub-command was given

  // The exit status where the program is to end now: --help was asked for, or it does not parse,
  // and that has been said.
  std::optional<int> Parse(const std::vector<std::string>& args);

 private:
  explicit Arguments(CLI::App& app);

  std::unique_ptr<CLI::App> own_;  // null in a sub-command
  CLI::App* app_;
};

}  // namespace ndp::cmd
