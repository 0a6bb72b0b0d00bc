// Which container holds which devices, and the kubelet's checkpoint file of it. Pure, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ndp::sim_kubelet {

// What one container holds of one resource.
struct Holding {
  std::string pod;
  std::string container;
  std::string resource;
  std::map<std::int64_t, std::vector<std::string>> devices;  // by NUMA node, -1 where unknown
  std::string response;  // the plugin's answer for the container, serialised
  bool init = false;     // its devices pass on to the pod's next containers

  std::set<std::string> Ids() const;
};

struct Checkpoint {
  std::vector<Holding> holdings;
  std::map<std::string, std::vector<std::string>> registered;  // healthy ids by resource
};

// The text of kubelet_internal_checkpoint, in the kubelet's own layout. Its checksum is a hash of
// our own: the real one depends on Go's way of printing structures.
std::string FormatCheckpoint(const Checkpoint& checkpoint);
Result<Checkpoint> ParseCheckpoint(std::string_view text);

}  // namespace ndp::sim_kubelet
