// One CDI device per GPU and MIG device: its nodes, its links. One thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cdi/discovery.h"
#include "cdi/spec.h"
#include "inventory/inventory.h"

namespace ndp::cdi {

struct GpuDevices {
  std::vector<Device> devices;
  // UUID to why the device has no entry: its pod would never start, so it must not be offered.
  std::map<std::string, std::string> troubles;
};

// Full GPUs whose MIG mode is off, and every MIG device, whatever the plugin offers of them.
GpuDevices DiscoverGpuDevices(Discovery& discovery, const inventory::Inventory& inventory);

// A full GPU alone.
Result<Device> MakeGpuDevice(Discovery& discovery, const inventory::Gpu& gpu);

// The name under which a runtime finds the device.
std::string DeviceName(Naming naming, const inventory::Gpu& gpu);
std::string DeviceName(Naming naming, const inventory::Gpu& gpu, const inventory::MigDevice& mig);

// The id and the name of a Tegra that NVML says nothing about.
inline constexpr std::string_view kTegraId = "tegra";
std::string TegraName(Naming naming);

}  // namespace ndp::cdi
