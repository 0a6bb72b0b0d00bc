// From what the driver and the host's files say to an Inventory.
#pragma once

#include <string>
#include <vector>

#include "inventory/inventory.h"
#include "nvml/driver.h"
#include "os/host_fs.h"

namespace ndp::inventory {

// What one scan asked of the driver: a reply for each enumeration index.
struct Scan {
  nvml::DriverInfo driver;
  std::vector<nvml::Reply<nvml::Gpu>> gpus;
};

// Reads sysfs (NUMA nodes) and mig-minors under `host`, and decides for each device its nodes and
// whether it can be handed out. One GPU that errors never hides the others. GPUs named "DGX
// Display" are left out.
Inventory Assemble(Platform platform, const Scan& scan, const os::HostFs& host);

// Container paths /dev/nvidia-caps/nvidia-cap<n>.
std::string CapNode(unsigned minor);

}  // namespace ndp::inventory
