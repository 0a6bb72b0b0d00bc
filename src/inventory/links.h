// The link matrix: read by a worker after registration, since the driver may take minutes for it.
#pragma once

#include <string>
#include <vector>

#include "inventory/inventory.h"
#include "nvml/driver.h"

namespace ndp::inventory {

struct LinkTarget {
  std::string uuid;
  std::string pci_bus_id;
  bool operator==(const LinkTarget&) const = default;
};

// What the driver said of one GPU: its common ancestor with each GPU of a higher position in the
// list of targets (-1 where that failed), and its active NVLinks.
struct GpuLinks {
  std::vector<int> ancestors;  // by position in the list of targets; own position is unused
  std::vector<nvml::NvLink> nvlinks;
};

// Asks the driver; blocks. A GPU that fails has no links and does not matter to the others.
GpuLinks ReadGpuLinks(nvml::Driver& driver, const std::vector<LinkTarget>& targets,
                      std::size_t self);

// Pure. Where the two ends disagree the smaller count holds and `warnings` says so. Links to a
// switch make a full fabric: the smaller number of switch links of the two.
LinkMatrix BuildLinkMatrix(const std::vector<LinkTarget>& targets,
                           const std::vector<GpuLinks>& links, std::vector<std::string>* warnings);

}  // namespace ndp::inventory
