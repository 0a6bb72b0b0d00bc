// Naming a device in configuration: by index, MIG index, UUID, PCI bus id, product name or memory.
//
// Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace ndp::config {

// Where in the configuration something was written. A message names both.
struct Where {
  std::string key_path;  // sharing.timeSlicing.resources[1]
  int line = 0;          // 0: not from a file

  // `sharing.timeSlicing.resources[1] (line 14)`.
  std::string Text() const;
  bool operator==(const Where&) const = default;
};

struct GpuIndex {
  int index = 0;
  bool operator==(const GpuIndex&) const = default;
};
struct MigIndex {  // 1:0 is the first MIG device of GPU 1
  int gpu = 0;
  int mig = 0;
  bool operator==(const MigIndex&) const = default;
};
struct DeviceUuid {  // GPU-… or MIG-…
  std::string text;
  bool operator==(const DeviceUuid&) const = default;
};
struct PciBusId {  // as NormalizePciBusId gives it
  std::string text;
  bool operator==(const PciBusId&) const = default;
};
struct NamePattern {  // of the product name; WildcardMatch
  std::string text;
  bool operator==(const NamePattern&) const = default;
};
struct MinMemory {
  std::uint64_t bytes = 0;
  bool operator==(const MinMemory&) const = default;
};
using Condition = std::variant<GpuIndex, MigIndex, DeviceUuid, PciBusId, NamePattern, MinMemory>;

// A device is meant if every condition holds; there is at least one.
struct DeviceSelector {
  Where where;
  std::vector<Condition> conditions;
  std::string Text() const;  // for messages: `GPU-5f3a…`, `name "*A100*" and at least 40Gi`
  bool operator==(const DeviceSelector&) const = default;
};

// "0", "1:0", "GPU-…", "MIG-…", "0000:07:00.0". kInvalidArgument says what would be right.
Result<Condition> ParseDeviceName(std::string_view text);

// "40Gi", "512Mi", "80G", a bare number of bytes: Kubernetes' quantities, whole and positive.
Result<std::uint64_t> ParseMemory(std::string_view text);

}  // namespace ndp::config
