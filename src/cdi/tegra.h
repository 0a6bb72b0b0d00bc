// The specification of a Tegra system: what NVIDIA's CSV files list. One thread.
#pragma once

#include "cdi/discovery.h"
#include "cdi/gpu_devices.h"
#include "cdi/spec.h"
#include "inventory/inventory.h"

namespace ndp::cdi {

struct TegraSpec {
  GpuDevices gpus;
  Edits common;
};

// kNotFound where there is no CSV file.
Result<TegraSpec> DiscoverTegra(Discovery& discovery, const inventory::Inventory& inventory);

}  // namespace ndp::cdi
