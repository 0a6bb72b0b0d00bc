// What a GPU or MIG device is: names, addresses, memory.
#include <algorithm>
#include <cstdio>
#include <string>

#include "sim_nvml/call.h"
#include "sim_nvml/text.h"
#include "sim_state/mig_model.h"

namespace ndp::sim_nvml {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1024} * 1024;

struct Bytes {
  std::uint64_t total = 0;
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
};

Bytes MemoryOf(const Target& target) {
  const Gpu& gpu = target.gpu;
  if (!target.sub) {
    return {.total = gpu.memory_total, .reserved = gpu.memory_reserved, .used = gpu.memory_used};
  }
  const auto& model = sim_state::MigModels()[static_cast<std::size_t>(gpu.mig_model)];
  const auto* profile = sim_state::FindProfile(model, target.instance().profile);
  return {.total = profile == nullptr ? 0 : profile->memory_mib * kMib, .reserved = 0, .used = 0};
}

Return PciOf(unsigned function, Handle device, PciInfo* info) {
  Target target;
  if (const Return status = Begin(function, device, Accept::kGpuOrMig, &target)) return status;
  if (info == nullptr) return kInvalidArgument;
  FillPci(target.gpu.pci, target.gpu.pci_id, target.gpu.pci_subsystem_id, info);
  return kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

NVML_API int nvmlDeviceGetName(Handle device, char* name, unsigned length) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetName"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  std::string text = target.gpu.name;
  if (target.sub) text += " MIG " + MigProfileName(target);
  return SetText(text, name, length);
}

NVML_API int nvmlDeviceGetUUID(Handle device, char* uuid, unsigned length) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetUUID"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  return SetText(target.sub ? target.device().uuid : target.gpu.uuid, uuid, length);
}

NVML_API int nvmlDeviceGetSerial(Handle device, char* serial, unsigned length) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetSerial"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  return SetText(target.gpu.serial, serial, length);
}

NVML_API int nvmlDeviceGetIndex(Handle device, unsigned* index) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetIndex"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  return Set(index, target.sub ? *target.sub : target.index);
}

NVML_API int nvmlDeviceGetMinorNumber(Handle device, unsigned* minor) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetMinorNumber"), device, Accept::kGpu, &target)) {
    return status;
  }
  return Set(minor, target.gpu.minor);
}

NVML_API int nvmlDeviceGetPciInfo(Handle device, PciInfo* info) {
  return PciOf(FunctionId("nvmlDeviceGetPciInfo"), device, info);
}
NVML_API int nvmlDeviceGetPciInfo_v2(Handle device, PciInfo* info) {
  return PciOf(FunctionId("nvmlDeviceGetPciInfo_v2"), device, info);
}
NVML_API int nvmlDeviceGetPciInfo_v3(Handle device, PciInfo* info) {
  return PciOf(FunctionId("nvmlDeviceGetPciInfo_v3"), device, info);
}

NVML_API int nvmlDeviceGetMemoryInfo(Handle device, Memory* memory) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetMemoryInfo"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  const Bytes bytes = MemoryOf(target);
  // Version 1 knows no reserved memory: it counts as used.
  const std::uint64_t used = bytes.used + bytes.reserved;
  return Set(memory, Memory{.total = bytes.total, .free = bytes.total - used, .used = used});
}

NVML_API int nvmlDeviceGetMemoryInfo_v2(Handle device, MemoryV2* memory) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetMemoryInfo_v2"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  if (memory == nullptr) return kInvalidArgument;
  if (memory->version != Version(sizeof(MemoryV2), 2)) return kArgumentVersionMismatch;
  const Bytes bytes = MemoryOf(target);
  *memory = {.version = memory->version,
             .total = bytes.total,
             .reserved = bytes.reserved,
             .free = bytes.total - bytes.used - bytes.reserved,
             .used = bytes.used};
  return kSuccess;
}

NVML_API int nvmlDeviceGetCudaComputeCapability(Handle device, int* major, int* minor) {
  Target target;
  if (const Return status = Begin(FunctionId("nvmlDeviceGetCudaComputeCapability"), device,
                                  Accept::kGpuOrMig, &target)) {
    return status;
  }
  if (major == nullptr) return kInvalidArgument;
  *major = static_cast<int>(target.gpu.cc_major);
  return Set(minor, target.gpu.cc_minor);
}

NVML_API int nvmlDeviceGetBrand(Handle device, unsigned* brand) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetBrand"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  return Set(brand, target.gpu.brand);
}

NVML_API int nvmlDeviceGetArchitecture(Handle device, unsigned* architecture) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetArchitecture"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  return Set(architecture, target.gpu.architecture);
}

NVML_API int nvmlDeviceGetNumaNodeId(Handle device, unsigned* node) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetNumaNodeId"), device, Accept::kGpu, &target)) {
    return status;
  }
  // The node of the GPU's own memory (Grace), not the CPUs' it hangs on.
  if (target.gpu.memory_numa_node < 0) return kNotSupported;
  return Set(node, target.gpu.memory_numa_node);
}

NVML_API int nvmlDeviceGetAddressingMode(Handle device, AddressingMode* mode) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetAddressingMode"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (mode == nullptr) return kInvalidArgument;
  if (mode->version != Version(sizeof(AddressingMode), 1)) return kArgumentVersionMismatch;
  if (target.gpu.addressing_mode < 0) return kNotSupported;
  mode->value = static_cast<std::uint32_t>(target.gpu.addressing_mode);
  return kSuccess;
}

NVML_API int nvmlDeviceGetComputeMode(Handle device, int* mode) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetComputeMode"), device, Accept::kGpu, &target)) {
    return status;
  }
  return Set(mode, target.gpu.compute_mode);
}

NVML_API int nvmlDeviceSetComputeMode(Handle device, int mode) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceSetComputeMode"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (mode < 0 || mode > 3 || mode == 1) return kInvalidArgument;
  const auto written = Library::Get().machine()->Write([&](sim_state::Control& control) {
    control.gpus[target.slot].compute_mode = static_cast<std::uint32_t>(mode);
    return ndp::Status();
  });
  return written.ok() ? kSuccess : kNoPermission;
}

NVML_API int nvmlDeviceGetPersistenceMode(Handle device, int* mode) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetPersistenceMode"), device, Accept::kGpu, &target)) {
    return status;
  }
  return Set(mode, 1);
}

NVML_API int nvmlDeviceGetVirtualizationMode(Handle device, unsigned* mode) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetVirtualizationMode"), device, Accept::kGpu, &target)) {
    return status;
  }
  return Set(mode, 0);
}

NVML_API int nvmlDeviceGetBoardId(Handle device, unsigned* board) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetBoardId"), device, Accept::kGpu, &target)) {
    return status;
  }
  return Set(board, target.gpu.pci.bus << 8U);
}

NVML_API int nvmlDeviceGetEccMode(Handle device, int* current, int* pending) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetEccMode"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (target.gpu.health.ecc_mode < 0) return kNotSupported;
  if (current == nullptr) return kInvalidArgument;
  *current = target.gpu.health.ecc_mode;
  return Set(pending, target.gpu.health.ecc_mode);
}

// NOLINTEND(readability-identifier-naming)

}  // namespace ndp::sim_nvml
