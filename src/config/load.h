// Settings from the command line, the environment and a file, in that order of precedence.
//
//   NDP_TRY(config::Loaded loaded, config::Load({.program = config::Program::kDevicePlugin,
//                                               .flags = given}));
//
// Reads the file that the options name and nothing else; keeps nothing. A reload is another Load
// with the same inputs. Any thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/option.h"
#include "config/settings.h"

namespace ndp::config {

// Process environment. nullopt: not set; a variable may be set and empty.
std::optional<std::string> ProcessEnv(const std::string& name);

// The text of a configuration file. kInvalidArgument where it is a folder or too large (4 MiB);
// kNotFound, kPermissionDenied.
Result<std::string> ReadConfigFile(const std::string& path);

struct Inputs {
  Program program = Program::kDevicePlugin;
  // By the option's flag: what was given, in order. `--flag` alone is "true". Elements of lists may
  // still be joined by commas.
  std::map<std::string, std::vector<std::string>> flags = {};
  std::function<std::optional<std::string>(const std::string& name)> env = ProcessEnv;
  std::function<Result<std::string>(const std::string& path)> read_file = ReadConfigFile;
};

enum class Source { kDefault, kFile, kEnvironment, kFlag };

// Where a value came from.
struct Origin {
  Source source = Source::kDefault;
  std::string name = {};  // --flag, VARIABLE or key path
  int line = 0;           // of the file

  // `flag --mig-strategy`, `environment MIG_STRATEGY`, `file: flags.migStrategy (line 3)`,
  // `default`.
  std::string Text() const;
  bool operator==(const Origin&) const = default;
};

struct Loaded {
  Program program = Program::kDevicePlugin;
  Settings settings = {};
  std::map<std::string, Origin, std::less<>> origins = {};  // by Option::id, and by section
  std::vector<std::string> warnings = {};                   // for the log, once per load
};

// kInvalidArgument says which option, key path and line is wrong and what would be right; other
// codes are those of reading the file. Whoever reloads keeps the old settings on an error.
Result<Loaded> Load(const Inputs& inputs);

// The settings that the program has, each with its value and origin: for the log at start and
// /status.json.
doc::Value ToJson(const Loaded& loaded);

// Of those the ones with another value, each with the new value, its origin, and what it `was`.
// That a line of the file has moved is no change.
doc::Value Changes(const Loaded& before, const Loaded& now);

}  // namespace ndp::config
