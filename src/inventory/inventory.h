// What the node has: an immutable snapshot built from the driver and the host's files. Everything
// downstream (resources, CDI files, labels, health) reads this, never NVML.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvml/driver.h"

namespace ndp::inventory {

enum class Platform { kUnknown, kNvml, kTegra, kWsl };
std::string_view PlatformName(Platform platform);  // "nvml"

// "gpu1/gi2/access" → minor, from /proc/driver/nvidia-caps/mig-minors. G is the GPU *minor*.
struct MigMinors {
  std::map<std::string, unsigned> by_name;

  std::optional<unsigned> GpuInstance(unsigned gpu_minor, unsigned gi) const;
  std::optional<unsigned> ComputeInstance(unsigned gpu_minor, unsigned gi, unsigned ci) const;
  bool operator==(const MigMinors&) const = default;
};

struct MigDevice {
  nvml::MigDevice nvml;
  std::string profile;  // "1g.10gb", "1c.2g.20gb", "1g.10gb+me"; empty where it cannot be told
  // Container paths: parent, GPU instance cap, compute instance cap.
  std::vector<std::string> device_nodes;
  std::string trouble;  // why it cannot be handed out; empty where it can
  bool operator==(const MigDevice&) const = default;
};

struct Gpu {
  nvml::Gpu nvml;
  std::optional<int> numa_node;           // nullopt: none; 0 is a node like any other
  std::vector<std::string> device_nodes;  // {"/dev/nvidia3"}, container paths; empty: minor unknown
  std::vector<MigDevice> mig;             // by slot; empty unless in MIG mode
  std::string trouble;                    // why it cannot be handed out; empty where it can

  const std::string& uuid() const { return nvml.uuid; }
  unsigned index() const { return nvml.index; }
  const std::string& pci_bus_id() const { return nvml.pci_bus_id; }
  std::string name() const { return nvml.name.value_or(""); }
  bool mig_enabled() const { return nvml.mig_mode && nvml.mig_mode->current; }
  // The GPU itself, or one of its MIG devices.
  bool Has(std::string_view uuid) const;
};

// A GPU the driver counts but cannot describe. `previous` is what an earlier scan knew of it.
struct BrokenGpu {
  unsigned index = 0;
  std::string reason;
};

// Link quality between GPUs, read after registration; until then PCI and NUMA alone.
struct LinkMatrix {
  // By UUID pair, both orders present. NVML's topology number (0 same board … 50 across) and the
  // number of NVLinks between the two (through NVSwitch: the smaller link count of the two).
  struct Pair {
    int ancestor = 50;
    unsigned nvlinks = 0;
    bool operator==(const Pair&) const = default;
  };
  std::map<std::pair<std::string, std::string>, Pair> pairs;
  bool complete = false;  // NVLinks have been read
  bool operator==(const LinkMatrix&) const = default;
};

struct Inventory {
  Platform platform = Platform::kUnknown;
  nvml::DriverInfo driver;
  std::vector<Gpu> gpus;  // by index
  std::vector<BrokenGpu> broken;
  MigMinors mig_minors;
  std::shared_ptr<const LinkMatrix> links;  // null until read

  const Gpu* FindUuid(std::string_view uuid) const;
  const Gpu* FindPci(std::string_view pci_bus_id) const;
  const Gpu* FindIndex(unsigned index) const;
};

}  // namespace ndp::inventory
