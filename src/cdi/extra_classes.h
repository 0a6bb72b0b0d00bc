// The classes beside the GPUs: GPUDirect Storage, InfiniBand, GDRCopy, IMEX channels. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cdi/discovery.h"
#include "cdi/spec.h"

namespace ndp::cdi {

// What the single device "all" of class gds, mofed or gdrcopy gives; empty where the node has none.
Edits DiscoverExtraClass(const Discovery& discovery, std::string_view device_class);

struct ImexChannels {
  std::vector<Device> devices;  // named by number
  std::vector<int> missing;
};
ImexChannels DiscoverImexChannels(const Discovery& discovery, const std::vector<int>& channels);

}  // namespace ndp::cdi
