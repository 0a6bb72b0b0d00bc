// The table of options: the one place that knows each option's flag, variables, key, default and
// meaning. The command line is built from it, Load reads by it, docs/configuration.md is checked
// against it.
//
// Built once, never changed; any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "doc/value.h"

namespace ndp::config {

enum class Program : unsigned {
  kDevicePlugin = 1,
  kFeatureDiscovery = 2,
  kMpsControlDaemon = 4,
  kConfigManager = 8,
};
std::string_view ProgramName(Program program);  // device-plugin, feature-discovery, …

// How an option's values are written.
enum class Kind {
  kText,      // one text; a variable that is set but empty counts
  kChoice,    // one of Option::choices
  kBool,      // `--flag` alone is true
  kNumber,    // whole or not
  kDuration,  // Go's text: 30s
  kList,      // repeated or comma separated
};
std::string_view KindName(Kind kind);

// How an option reaches its place in Settings.
struct Binding {
  Kind kind = Kind::kText;
  std::vector<std::string_view> choices = {};  // of kChoice, and of lists of them
  // One value, or the elements of a list. What is odd but usable becomes a warning.
  std::function<Status(const std::vector<std::string>& values, Settings& settings,
                       std::vector<std::string>& warnings)>
      set = {};
  std::function<doc::Value(const Settings& settings)> show = {};
};

struct Option {
  std::string_view flag = {};                  // without dashes; empty: no flag
  std::vector<std::string_view> aliases = {};  // without dashes; of one letter: `-o`
  std::vector<std::string_view> env = {};      // the first that is set counts
  std::string_view gfd_env = {};               // looked at before `env`, by feature-discovery only
  std::string_view key = {};                   // of the file; empty: none
  std::string_view fallback = {};              // the default, parsed like any value
  std::string_view fallback_text = {};  // the default in words, where `fallback` does not say it
  std::string_view help = {};
  unsigned programs = 0;  // whose flags and variables it has; its key all programs read
  Binding bind = {};

  // Unique among a program's options: the flag, else the key, else the variable.
  std::string_view id() const { return !flag.empty() ? flag : !key.empty() ? key : env.front(); }
  bool of(Program program) const { return (programs & static_cast<unsigned>(program)) != 0; }
  // The variables that `program` reads, in the order they count.
  std::vector<std::string_view> EnvOf(Program program) const;
  std::string_view DefaultText() const { return fallback_text.empty() ? fallback : fallback_text; }
};

std::span<const Option> AllOptions();
// In the order of the table.
std::vector<const Option*> OptionsOf(Program program);

// Keys of the file that no option has: those of lists, and `version`. `[]` stands for any element.
std::span<const std::string_view> StructuredKeys();

}  // namespace ndp::config
