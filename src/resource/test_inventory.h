// Inventories for this room's tests, one line each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "inventory/inventory.h"

namespace ndp::resource {

inline inventory::Gpu TestGpu(unsigned index, std::string name = "NVIDIA A100-SXM4-40GB") {
  inventory::Gpu gpu;
  gpu.nvml.index = index;
  gpu.nvml.uuid = "GPU-" + std::to_string(index);
  gpu.nvml.pci_bus_id = "0000:0" + std::to_string(index) + ":00.0";
  gpu.nvml.minor = index;
  gpu.nvml.name = std::move(name);
  gpu.nvml.memory_bytes = std::uint64_t{40} << 30;
  gpu.numa_node = static_cast<int>(index / 4);
  gpu.device_nodes = {"/dev/nvidia" + std::to_string(index)};
  return gpu;
}

// In MIG mode with one device for each profile.
inline inventory::Gpu TestMigGpu(unsigned index, const std::vector<std::string>& profiles) {
  inventory::Gpu gpu = TestGpu(index);
  gpu.nvml.mig_mode = {.current = true, .pending = true};
  for (const std::string& profile : profiles) {
    inventory::MigDevice mig;
    mig.nvml.slot = static_cast<unsigned>(gpu.mig.size());
    mig.nvml.uuid = "MIG-" + std::to_string(index) + "-" + std::to_string(mig.nvml.slot);
    mig.nvml.gpu_instance = 7 + mig.nvml.slot;
    mig.profile = profile;
    mig.device_nodes = {gpu.device_nodes[0], "/dev/nvidia-caps/nvidia-cap30"};
    gpu.mig.push_back(std::move(mig));
  }
  return gpu;
}

inline inventory::Inventory TestInventory(std::vector<inventory::Gpu> gpus) {
  inventory::Inventory inventory;
  inventory.platform = inventory::Platform::kNvml;
  inventory.gpus = std::move(gpus);
  return inventory;
}

inline inventory::Inventory TestGpus(unsigned count) {
  std::vector<inventory::Gpu> gpus;
  for (unsigned i = 0; i < count; ++i) gpus.push_back(TestGpu(i));
  return TestInventory(std::move(gpus));
}

inline config::SharedResource TestEntry(int number, std::string name, int replicas,
                                        config::SharedDevices devices = config::AllDevices{},
                                        std::string offered_as = "") {
  config::SharedResource entry;
  entry.where = {"sharing.timeSlicing.resources[" + std::to_string(number) + "]", 10 + number};
  entry.devices_where = {entry.where.key_path + ".devices", 20 + number};
  entry.offered_as = offered_as.empty() ? name : std::move(offered_as);
  entry.name = std::move(name);
  entry.devices = std::move(devices);
  entry.replicas = replicas;
  return entry;
}

inline config::DeviceSelector TestSelector(config::Condition condition, int line = 30) {
  return {.where = {"devices[0]", line}, .conditions = {std::move(condition)}};
}

inline config::DeviceList TestList(const std::vector<config::Condition>& conditions) {
  config::DeviceList list;
  for (const auto& condition : conditions) list.devices.push_back(TestSelector(condition));
  return list;
}

}  // namespace ndp::resource
