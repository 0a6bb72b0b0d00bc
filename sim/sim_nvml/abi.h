// NVML's C ABI, as far as the simulated library speaks it: structs whose layout a client was
// compiled against, and the numbers it compares with. API version 13, x86-64 and arm64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ndp::sim_nvml {

// What a function returns.
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kInUse = 19,
  kVersionMismatch = 18,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

using Handle = void*;

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 &&
              offsetof(PciInfo, bus) == 20 && offsetof(PciInfo, device) == 24 &&
              offsetof(PciInfo, pci_device_id) == 28 && offsetof(PciInfo, pci_subsystem_id) == 32 &&
              offsetof(PciInfo, bus_id) == 36);

struct Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(Memory) == 24 && offsetof(Memory, free) == 8 && offsetof(Memory, used) == 16);

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8 &&
              offsetof(MemoryV2, reserved) == 16 && offsetof(MemoryV2, free) == 24 &&
              offsetof(MemoryV2, used) == 32);

struct EventData {
  Handle device;
  std::uint64_t type;
  std::uint64_t data;
  std::uint32_t gi_id;
  std::uint32_t ci_id;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, type) == 8 &&
              offsetof(EventData, data) == 16 && offsetof(EventData, gi_id) == 24 &&
              offsetof(EventData, ci_id) == 28);

struct Attributes {
  std::uint32_t multiprocessor_count;
  std::uint32_t copy;
  std::uint32_t decoder;
  std::uint32_t encoder;
  std::uint32_t jpeg;
  std::uint32_t ofa;
  std::uint32_t gi_slices;
  std::uint32_t ci_slices;
  std::uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40 && offsetof(Attributes, copy) == 4 &&
              offsetof(Attributes, decoder) == 8 && offsetof(Attributes, encoder) == 12 &&
              offsetof(Attributes, jpeg) == 16 && offsetof(Attributes, ofa) == 20 &&
              offsetof(Attributes, gi_slices) == 24 && offsetof(Attributes, ci_slices) == 28 &&
              offsetof(Attributes, memory_mib) == 32);

struct GpuInstanceProfileInfo {
  std::uint32_t id;
  std::uint32_t p2p;
  std::uint32_t slices;
  std::uint32_t instances;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy;
  std::uint32_t decoder;
  std::uint32_t encoder;
  std::uint32_t jpeg;
  std::uint32_t ofa;
  std::uint64_t memory_mib;
};
static_assert(sizeof(GpuInstanceProfileInfo) == 48 && offsetof(GpuInstanceProfileInfo, p2p) == 4 &&
              offsetof(GpuInstanceProfileInfo, slices) == 8 &&
              offsetof(GpuInstanceProfileInfo, instances) == 12 &&
              offsetof(GpuInstanceProfileInfo, multiprocessor_count) == 16 &&
              offsetof(GpuInstanceProfileInfo, copy) == 20 &&
              offsetof(GpuInstanceProfileInfo, decoder) == 24 &&
              offsetof(GpuInstanceProfileInfo, encoder) == 28 &&
              offsetof(GpuInstanceProfileInfo, jpeg) == 32 &&
              offsetof(GpuInstanceProfileInfo, ofa) == 36 &&
              offsetof(GpuInstanceProfileInfo, memory_mib) == 40);

struct Placement {
  std::uint32_t start;
  std::uint32_t size;
};

struct GpuInstanceInfo {
  Handle device;
  std::uint32_t id;
  std::uint32_t profile_id;
  Placement placement;
};
static_assert(sizeof(GpuInstanceInfo) == 24 && offsetof(GpuInstanceInfo, id) == 8 &&
              offsetof(GpuInstanceInfo, profile_id) == 12 &&
              offsetof(GpuInstanceInfo, placement) == 16);

struct ComputeInstanceProfileInfo {
  std::uint32_t id;
  std::uint32_t slices;
  std::uint32_t instances;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy;
  std::uint32_t decoder;
  std::uint32_t encoder;
  std::uint32_t jpeg;
  std::uint32_t ofa;
};
static_assert(sizeof(ComputeInstanceProfileInfo) == 36 &&
              offsetof(ComputeInstanceProfileInfo, slices) == 4 &&
              offsetof(ComputeInstanceProfileInfo, instances) == 8 &&
              offsetof(ComputeInstanceProfileInfo, multiprocessor_count) == 12 &&
              offsetof(ComputeInstanceProfileInfo, ofa) == 32);

struct ComputeInstanceInfo {
  Handle device;
  Handle gpu_instance;
  std::uint32_t id;
  std::uint32_t profile_id;
  Placement placement;
};
static_assert(sizeof(ComputeInstanceInfo) == 32 &&
              offsetof(ComputeInstanceInfo, gpu_instance) == 8 &&
              offsetof(ComputeInstanceInfo, id) == 16 &&
              offsetof(ComputeInstanceInfo, profile_id) == 20 &&
              offsetof(ComputeInstanceInfo, placement) == 24);

struct FabricInfo {
  std::uint8_t cluster[16];
  std::uint32_t status;
  std::uint32_t clique;
  std::uint8_t state;
};
static_assert(sizeof(FabricInfo) == 28 && offsetof(FabricInfo, status) == 16 &&
              offsetof(FabricInfo, clique) == 20 && offsetof(FabricInfo, state) == 24);

struct FabricInfoV2 {
  std::uint32_t version;
  std::uint8_t cluster[16];
  std::uint32_t status;
  std::uint32_t clique;
  std::uint8_t state;
  std::uint32_t health_mask;
};
static_assert(sizeof(FabricInfoV2) == 36 && offsetof(FabricInfoV2, cluster) == 4 &&
              offsetof(FabricInfoV2, status) == 20 && offsetof(FabricInfoV2, clique) == 24 &&
              offsetof(FabricInfoV2, state) == 28 && offsetof(FabricInfoV2, health_mask) == 32);

// One word more than v2: a summary of the health mask.
struct FabricInfoV3 {
  FabricInfoV2 v2;
  std::uint8_t health_summary;
};
static_assert(sizeof(FabricInfoV3) == 40);

struct FieldValue {
  std::uint32_t field_id;
  std::uint32_t scope_id;
  std::int64_t timestamp;
  std::int64_t latency_us;
  std::uint32_t value_type;
  std::uint32_t status;
  union {
    double real;
    std::uint32_t u32;
    std::uint64_t u64;
  } value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, scope_id) == 4 &&
              offsetof(FieldValue, timestamp) == 8 && offsetof(FieldValue, latency_us) == 16 &&
              offsetof(FieldValue, value_type) == 24 && offsetof(FieldValue, status) == 28 &&
              offsetof(FieldValue, value) == 32);

struct ProcessInfo {
  std::uint32_t pid;
  std::uint64_t memory;
  std::uint32_t gi_id;
  std::uint32_t ci_id;
};
static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, memory) == 8 &&
              offsetof(ProcessInfo, gi_id) == 16 && offsetof(ProcessInfo, ci_id) == 20);

struct ProcessInfoV1 {
  std::uint32_t pid;
  std::uint64_t memory;
};
static_assert(sizeof(ProcessInfoV1) == 16);

struct AddressingMode {
  std::uint32_t version;
  std::uint32_t value;
};
static_assert(sizeof(AddressingMode) == 8);

struct Utilization {
  std::uint32_t gpu;
  std::uint32_t memory;
};

constexpr std::uint32_t Version(std::size_t size, std::uint32_t version) {
  return static_cast<std::uint32_t>(size) | (version << 24U);
}
static_assert(Version(sizeof(MemoryV2), 2) == 0x02000028);
static_assert(Version(sizeof(FabricInfoV2), 2) == 0x02000024);
static_assert(Version(sizeof(FabricInfoV3), 3) == 0x03000028);
static_assert(Version(sizeof(AddressingMode), 1) == 0x01000008);

}  // namespace ndp::sim_nvml

// Marks what the library exports; everything else is hidden by its version script.
#define NVML_API extern "C" __attribute__((visibility("default")))
