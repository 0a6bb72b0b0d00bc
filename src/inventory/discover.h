// From what the driver and the host's files say to an Inventory.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "inventory/inventory.h"
#include "nvml/driver.h"
#include "os/host_fs.h"

namespace ndp::inventory {

// What one scan asked of the driver: a reply for each enumeration index.
struct Scan {
  nvml::DriverInfo driver;
  std::vector<nvml::Reply<nvml::Gpu>> gpus;
};

// For programs that look once and may wait for the driver. An error where the driver as a whole
// does not answer; what fails of one GPU is its reply.
Result<Scan> ReadScan(nvml::Driver& driver);

// Reads sysfs (NUMA nodes) and mig-minors under `host`, and decides for each device its nodes and
// whether it can be handed out. One GPU that errors never hides the others. GPUs named "DGX
// Display" are left out.
Inventory Assemble(Platform platform, const Scan& scan, const os::HostFs& host);

// Container paths /dev/nvidia-caps/nvidia-cap<n>.
std::string CapNode(unsigned minor);

}  // namespace ndp::inventory
