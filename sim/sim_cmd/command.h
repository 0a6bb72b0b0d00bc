// Command line options, as far as the sub-commands need them: a thin cover over CLI11, whose header
// takes seconds to compile and stays in command.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
}  // namespace CLI

namespace ndp::sim_cmd {

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& Required();
  Option& Excludes(const Option& other);
  Option& Range(std::uint64_t lowest, std::uint64_t highest);
  CLI::Option* raw() const { return option_; }

 private:
  CLI::Option* option_;
};

// A sub-command while it is being described. `value`s must live until the command line is parsed.
class Command {
 public:
  Command(CLI::App& app, int& exit_code) : app_(app), exit_code_(exit_code) {}

  // A sub-command of this one.
  Command Sub(const std::string& name, const std::string& help);
  // Printed at the end of --help.
  void Footer(const std::string& text);
  // One of the sub-commands must be named.
  void RequireSub();

  // T: std::string, std::uint32_t, std::uint64_t, std::optional of int, std::uint32_t,
  // std::uint64_t or std::string, std::vector of std::string or std::uint32_t.
  template <typename T>
  Option Add(const std::string& name, T& value, const std::string& help);
  Option Flag(const std::string& name, bool& value, const std::string& help);
  // Exactly one of these must be given.
  void ExactlyOne(std::initializer_list<Option> options);

  // Called when the sub-command was named and its options are right.
  void OnRun(std::function<Status()> run);

  CLI::App& raw() { return app_; }
  int& exit_code() { return exit_code_; }

 private:
  CLI::App& app_;
  int& exit_code_;
};

// A whole program: `add` describes its sub-commands. The exit status: 0, 1 where a command failed,
// 2 for bad input.
int RunProgram(const char* name, const char* help, const char* version,
               std::initializer_list<void (*)(Command& program)> add, int argc, char** argv);

}  // namespace ndp::sim_cmd
