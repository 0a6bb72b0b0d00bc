#include "sim_cmd/commands.h"

#include <vector>

#include "base/text.h"

namespace ndp::sim_cmd {
namespace {

struct NvmlStatus {
  std::string_view name;
  int code;
};
constexpr NvmlStatus kStatuses[] = {
    {"uninitialized", 1},
    {"invalid-argument", 2},
    {"not-supported", 3},
    {"no-permission", 4},
    {"not-found", 6},
    {"insufficient-size", 7},
    {"driver-not-loaded", 9},
    {"timeout", 10},
    {"library-not-found", 12},
    {"function-not-found", 13},
    {"gpu-is-lost", 15},
    {"reset-required", 16},
    {"operating-system", 17},
    {"version-mismatch", 18},
    {"in-use", 19},
    {"memory", 20},
    {"not-ready", 27},
    {"gpu-not-found", 28},
    {"unknown", 999},
};

}  // namespace

Result<int> ParseNvmlStatus(const std::string& text) {
  std::vector<std::string> names;
  for (const NvmlStatus& status : kStatuses) {
    if (status.name == text) return status.code;
    names.emplace_back(status.name);
  }
  if (const auto number = ParseUnsigned(text); number && *number > 0 && *number <= 999) {
    return static_cast<int>(*number);
  }
  return Error(
      Code::kInvalidArgument,
      "--error " + text + ": must be a number from 1 to 999 or one of " + Join(names, ", "));
}

}  // namespace ndp::sim_cmd
