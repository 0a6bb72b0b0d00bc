// Which GPUs of the inventory exist for us: the `devices` section. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"
#include "inventory/inventory.h"
#include "resource/resource_set.h"

namespace ndp::resource {

// Conditions about MIG devices never hold.
bool Matches(const config::DeviceSelector& selector, const inventory::Gpu& gpu);

struct Selection {
  std::vector<int> gpus;  // positions in Inventory::gpus, ascending
  std::vector<NotOffered> excluded;
  std::vector<std::string> warnings;  // selectors that match nothing
};
Selection SelectGpus(const config::Devices& devices, const inventory::Inventory& inventory);

// "0 (GPU-5f3a…, 0000:07:00.0, NVIDIA H100 80GB HBM3), 1 (…)": the GPUs there are, for messages.
std::string DescribeGpus(const inventory::Inventory& inventory);

}  // namespace ndp::resource
