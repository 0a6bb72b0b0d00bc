// The command line of a program, built from the table of options in `config`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/option.h"

namespace ndp::cmd {

// Option id → the values given for it.
using Given = std::map<std::string, std::vector<std::string>>;

struct Parsed {
  Given given;
  // Set where there is nothing more to do: --help and --version (0), a bad command line (2). What
  // there was to say has been printed.
  std::optional<int> exit;
};

Parsed ParseCommandLine(config::Program program, const std::string& name,
                        const std::vector<std::string>& args);

}  // namespace ndp::cmd
