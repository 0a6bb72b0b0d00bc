// What each command to the kubelet stand-in takes: its help, and the check of what came in, so that
// those who run a command meet nothing else. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doc/value.h"

namespace ndp::sim_kubelet {

// The commands with their fields, a line each.
std::string CommandHelp();

// Whether it is a known command with all fields that it needs, each of its kind, and no other. The
// error names the field and shows the command as it should be.
Status CheckCommand(const doc::Value& command);

// The fields of a command that was checked.
class Fields {
 public:
  explicit Fields(const doc::Value& command) : command_(command) {}

  // Empty or 0 where it was not given.
  std::string Text(std::string_view key) const { return TextOr(key, ""); }
  std::string TextOr(std::string_view key, std::string fallback) const;
  int Number(std::string_view key) const { return MaybeNumber(key).value_or(0); }
  int NumberOr(std::string_view key, int fallback) const {
    return MaybeNumber(key).value_or(fallback);
  }
  std::optional<int> MaybeNumber(std::string_view key) const;
  bool Flag(std::string_view key) const;
  std::vector<std::string> Texts(std::string_view key) const;
  std::vector<int> Numbers(std::string_view key) const;

 private:
  const doc::Value& command_;
};

}  // namespace ndp::sim_kubelet
