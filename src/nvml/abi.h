// The part of NVML's binary interface (API version 13) that this program uses, under our own
// names. Sizes and offsets were checked against the public header on x86-64; a driver that does
// not know a function lacks the symbol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ndp::nvml::abi {

using Device = struct OpaqueDevice*;
using EventSet = struct OpaqueEventSet*;
using GpuInstance = struct OpaqueGpuInstance*;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct Memory {
  std::uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct EventData {
  Device device;
  std::uint64_t event_type, event_data;
  unsigned gpu_instance_id, compute_instance_id;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, gpu_instance_id) == 24);
inline constexpr unsigned kNoInstance = 0xFFFFFFFF;

struct Attributes {
  unsigned multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
  unsigned gpu_instance_slices, compute_instance_slices;
  std::uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40 && offsetof(Attributes, memory_mib) == 32);

struct GpuInstanceProfileInfo {
  unsigned id, is_p2p_supported, slice_count, instance_count, multiprocessors;
  unsigned copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
  std::uint64_t memory_mib;
};
static_assert(sizeof(GpuInstanceProfileInfo) == 48);

struct GpuInstanceInfo {
  Device device;
  unsigned id, profile_id, placement_start, placement_size;
};
static_assert(sizeof(GpuInstanceInfo) == 24);

struct FabricInfo {
  unsigned char cluster_uuid[16];
  unsigned status, clique;
  unsigned char state;
};
static_assert(sizeof(FabricInfo) == 28 && offsetof(FabricInfo, state) == 24);

struct FabricInfoV2 {
  unsigned version;
  unsigned char cluster_uuid[16];
  unsigned status, clique;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(FabricInfoV2) == 36 && offsetof(FabricInfoV2, state) == 28);
inline constexpr unsigned kFabricInfoV2 = 0x02000024;

struct FieldValue {
  unsigned field_id, scope_id;
  std::int64_t timestamp, latency_usec;
  int value_type, nvml_return;
  union {
    double d;
    unsigned u;
    std::uint64_t ul;
    std::int64_t sl;
    int i;
    unsigned short us;
  } value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);
inline constexpr unsigned kFieldRecoveryAction = 230;

struct AddressingMode {
  unsigned version, value;
};
static_assert(sizeof(AddressingMode) == 8);
inline constexpr unsigned kAddressingModeV1 = 0x01000008;

}  // namespace ndp::nvml::abi
