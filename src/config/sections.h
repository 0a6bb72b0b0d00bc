// The sections of the file that are more than single values. Each takes the node of its section,
// which may be unset, and fails with kInvalidArgument, key path and line. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/node.h"
#include "config/settings.h"

namespace ndp::config {

// Where resource naming is off, `rename`, `devices` and `resources` are checked and then left out,
// as upstream does; `ignored` says, one line a key, what would change with it on.
struct NamingSwitch {
  bool on = false;
  std::vector<std::string> ignored = {};
};

// `sharing`: the section in force.
Result<Sharing> ReadSharing(const Node& section, NamingSwitch& naming,
                            std::vector<std::string>& warnings);

// `resources`.
Result<NameRules> ReadNameRules(const Node& section, NamingSwitch& naming);

// `devices`.
Result<Devices> ReadDevices(const Node& section);

// The five lists of `health.xids`.
Result<std::map<std::uint64_t, XidClass>> ReadMovedXids(const Node& section);

}  // namespace ndp::config
