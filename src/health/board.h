// The verdicts of one moment, for everybody who lists, answers, labels or shows devices: an
// immutable snapshot, built by a pure function from what is known of each GPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "health/gpu_record.h"
#include "inventory/inventory.h"

namespace ndp::health {

// Everything that can be said about one device. Where it is healthy only `warnings` counts.
struct DeviceHealth {
  std::string index;       // "3", of a MIG device "3:1"; as last seen, empty where it never was
  std::string pci_bus_id;  // of the GPU
  bool healthy = true;
  std::string reason;
  std::string cause_class;  // fault, reset, condition, hang, fence, driver
  std::optional<std::uint64_t> xid;
  std::string next_step;
  WallTime since{};
  std::uint64_t count = 0;
  std::vector<std::string> warnings;
  bool operator==(const DeviceHealth&) const = default;

  // Same but for the count: nothing that a list or a log line would tell anew.
  bool SameVerdict(const DeviceHealth& other) const;
};

struct DriverHealth {
  bool available = true;
  std::string reason;  // also within the grace period, while devices are still Healthy
  WallTime since{};
  bool grace_over = false;
  bool operator==(const DriverHealth&) const = default;
};

struct HealthBoard {
  // By UUID of GPU or MIG device: those of the inventory, and of GPUs that are gone.
  std::map<std::string, DeviceHealth, std::less<>> devices;
  DriverHealth driver;

  // Healthy where the board does not know the device.
  const DeviceHealth& Of(std::string_view uuid) const;
  bool SameVerdicts(const HealthBoard& other) const;
  bool operator==(const HealthBoard&) const = default;
};

// One GPU as the board's builder sees it.
struct GpuState {
  const inventory::Gpu* gpu = nullptr;  // as last seen; at least uuid
  const GpuRecord* record = nullptr;
  std::vector<std::string> warnings;
  std::string after_reset;  // GpuHealth::AfterReset
  bool hung = false;        // a call for it is out past the watchdog
};

struct Fenced {
  std::string reason;
  WallTime since{};
};

// `fences` by UUID; a GPU's fence covers its MIG devices.
HealthBoard BuildBoard(const std::vector<GpuState>& gpus,
                       const std::map<std::string, Fenced>& fences, const DriverHealth& driver);

// One change of a verdict, for the log.
struct Transition {
  std::string uuid;
  DeviceHealth before;
  DeviceHealth after;
};
std::vector<Transition> Transitions(const HealthBoard& before, const HealthBoard& after);

}  // namespace ndp::health
