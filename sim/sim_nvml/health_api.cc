// What health checks read, and what runs on a GPU.
#include <algorithm>
#include <cstring>

#include "sim_nvml/call.h"

namespace ndp::sim_nvml {
namespace {

constexpr std::uint32_t kFieldEccVolatileCorrected = 1;
constexpr std::uint32_t kFieldEccVolatileUncorrected = 2;
constexpr std::uint32_t kFieldEccAggregateCorrected = 3;
constexpr std::uint32_t kFieldEccAggregateUncorrected = 4;
constexpr std::uint32_t kFieldTotalEnergy = 83;
constexpr std::uint32_t kFieldPcieReplay = 94;
constexpr std::uint32_t kFieldRecoveryAction = 230;
constexpr std::uint32_t kTypeUnsigned = 1;
constexpr std::uint32_t kTypeUnsignedLongLong = 3;

std::uint64_t EnergyMillijoule(const sim_state::Health& health) {
  const std::int64_t running =
      std::max<std::int64_t>(0, sim_state::RealtimeNs() - health.energy_since_ns);
  return health.energy_millijoule +
         static_cast<std::uint64_t>(running / 1'000'000) * health.power_milliwatt / 1000;
}

// A field that the GPU lacks has a status of its own; the call succeeds.
void Fill(const sim_state::Health& health, FieldValue* field) {
  field->timestamp = sim_state::RealtimeNs() / 1000;
  field->latency_us = 0;
  field->status = kSuccess;
  field->value_type = kTypeUnsignedLongLong;
  field->value.u64 = 0;
  const bool ecc = health.ecc_mode > 0;
  switch (field->field_id) {
    case kFieldEccVolatileCorrected:
    case kFieldEccVolatileUncorrected:
    case kFieldEccAggregateCorrected:
    case kFieldEccAggregateUncorrected: {
      const std::uint32_t which = field->field_id - kFieldEccVolatileCorrected;
      if (!ecc) field->status = kNotSupported;
      field->value.u64 = ecc ? health.ecc[which % 2][which / 2] : 0;
      return;
    }
    case kFieldTotalEnergy:
      field->value.u64 = EnergyMillijoule(health);
      return;
    case kFieldPcieReplay:
      field->value_type = kTypeUnsigned;
      field->value.u32 = health.pcie_replay;
      return;
    case kFieldRecoveryAction:
      field->value_type = kTypeUnsigned;
      if (health.recovery_action < 0) {
        field->status = kNotSupported;
      } else {
        field->value.u32 = static_cast<std::uint32_t>(health.recovery_action);
      }
      return;
    default:
      field->status = kNotSupported;
  }
}

// `Info` is ProcessInfo, or version 1's, which knows no instances.
template <typename Info>
Return Processes(unsigned function, Handle device, unsigned* count, Info* infos) {
  Target target;
  if (const Return status = Begin(function, device, Accept::kGpuOrMig, &target)) return status;
  if (count == nullptr) return kInvalidArgument;
  const unsigned room = infos == nullptr ? 0 : *count;
  unsigned found = 0;
  for (const auto& process : target.gpu.processes) {
    if (process.pid == 0) continue;
    if (target.sub &&
        (process.gi_id != target.device().gi_id || process.ci_id != target.device().ci_id)) {
      continue;
    }
    if (found < room) {
      infos[found].pid = process.pid;
      infos[found].memory = process.memory;
      if constexpr (requires { infos[found].gi_id; }) {
        infos[found].gi_id = process.gi_id;
        infos[found].ci_id = process.ci_id;
      }
    }
    ++found;
  }
  *count = found;
  return found > room ? kInsufficientSize : kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

NVML_API int nvmlDeviceGetRemappedRows(Handle device, unsigned* correctable,
                                       unsigned* uncorrectable, unsigned* pending,
                                       unsigned* failure) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetRemappedRows"), device, Accept::kGpu, &target)) {
    return status;
  }
  const auto& health = target.gpu.health;
  // With MIG on, the rows are not the whole GPU's to tell.
  if (health.remap_supported == 0 || target.gpu.mig_current != 0) return kNotSupported;
  if (correctable == nullptr || uncorrectable == nullptr || pending == nullptr) {
    return kInvalidArgument;
  }
  *correctable = health.remap_correctable;
  *uncorrectable = health.remap_uncorrectable;
  *pending = health.remap_pending;
  return Set(failure, health.remap_failure);
}

NVML_API int nvmlDeviceGetRetiredPagesPendingStatus(Handle device, int* pending) {
  Target target;
  if (const Return status = Begin(FunctionId("nvmlDeviceGetRetiredPagesPendingStatus"), device,
                                  Accept::kGpu, &target)) {
    return status;
  }
  if (target.gpu.health.retired_pending < 0) return kNotSupported;
  return Set(pending, target.gpu.health.retired_pending);
}

NVML_API int nvmlDeviceGetTotalEccErrors(Handle device, int type, int counter,
                                         std::uint64_t* count) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetTotalEccErrors"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (type < 0 || type > 1 || counter < 0 || counter > 1) return kInvalidArgument;
  if (target.gpu.health.ecc_mode <= 0) return kNotSupported;
  return Set(count, target.gpu.health.ecc[type][counter]);
}

NVML_API int nvmlDeviceGetTemperature(Handle device, int sensor, unsigned* temperature) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetTemperature"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (sensor != 0) return kInvalidArgument;
  if (target.gpu.health.temperature < 0) return kNotSupported;
  return Set(temperature, target.gpu.health.temperature);
}

NVML_API int nvmlDeviceGetTemperatureThreshold(Handle device, int kind, unsigned* temperature) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetTemperatureThreshold"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (kind < 0) return kInvalidArgument;
  if (kind > 3 || target.gpu.health.thresholds[kind] < 0) return kNotSupported;
  return Set(temperature, target.gpu.health.thresholds[kind]);
}

NVML_API int nvmlDeviceGetFieldValues(Handle device, int count, FieldValue* values) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetFieldValues"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (count < 0 || values == nullptr) return kInvalidArgument;
  for (int i = 0; i < count; ++i) Fill(target.gpu.health, &values[i]);
  return kSuccess;
}

NVML_API int nvmlDeviceGetPcieReplayCounter(Handle device, unsigned* count) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetPcieReplayCounter"), device, Accept::kGpu, &target)) {
    return status;
  }
  return Set(count, target.gpu.health.pcie_replay);
}

NVML_API int nvmlDeviceGetTotalEnergyConsumption(Handle device, std::uint64_t* millijoule) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetTotalEnergyConsumption"), device, Accept::kGpu, &target)) {
    return status;
  }
  // Counted from Volta on.
  if (target.gpu.architecture < 5) return kNotSupported;
  return Set(millijoule, EnergyMillijoule(target.gpu.health));
}

NVML_API int nvmlDeviceGetGpuFabricInfo(Handle device, FabricInfo* info) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetGpuFabricInfo"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (info == nullptr) return kInvalidArgument;
  const auto& fabric = target.gpu.fabric;
  *info = {.cluster = {},
           .status = fabric.status,
           .clique = fabric.clique,
           .state = static_cast<std::uint8_t>(fabric.state)};
  std::memcpy(info->cluster, fabric.cluster, sizeof info->cluster);
  return kSuccess;
}

NVML_API int nvmlDeviceGetGpuFabricInfoV(Handle device, FabricInfoV2* info) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetGpuFabricInfoV"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (info == nullptr) return kInvalidArgument;
  const std::uint32_t version = info->version;
  const bool third = version == Version(sizeof(FabricInfoV3), 3);
  if (!third && version != Version(sizeof(FabricInfoV2), 2)) return kArgumentVersionMismatch;
  const auto& fabric = target.gpu.fabric;
  *info = {.version = version,
           .cluster = {},
           .status = fabric.status,
           .clique = fabric.clique,
           .state = static_cast<std::uint8_t>(fabric.state),
           .health_mask = fabric.health_mask};
  std::memcpy(info->cluster, fabric.cluster, sizeof info->cluster);
  // 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity.
  if (third) {
    reinterpret_cast<FabricInfoV3*>(info)->health_summary = fabric.state == 0         ? 0
                                                            : fabric.health_mask == 0 ? 1
                                                                                      : 2;
  }
  return kSuccess;
}

NVML_API int nvmlDeviceGetComputeRunningProcesses(Handle device, unsigned* count,
                                                  ProcessInfoV1* infos) {
  return Processes(FunctionId("nvmlDeviceGetComputeRunningProcesses"), device, count, infos);
}
NVML_API int nvmlDeviceGetComputeRunningProcesses_v2(Handle device, unsigned* count,
                                                     ProcessInfo* infos) {
  return Processes(FunctionId("nvmlDeviceGetComputeRunningProcesses_v2"), device, count, infos);
}
NVML_API int nvmlDeviceGetComputeRunningProcesses_v3(Handle device, unsigned* count,
                                                     ProcessInfo* infos) {
  return Processes(FunctionId("nvmlDeviceGetComputeRunningProcesses_v3"), device, count, infos);
}

NVML_API int nvmlDeviceGetUtilizationRates(Handle device, Utilization* rates) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetUtilizationRates"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (target.gpu.mig_current != 0) return kNotSupported;
  return Set(rates, Utilization{.gpu = target.gpu.health.gpu_utilization,
                                .memory = target.gpu.health.memory_utilization});
}

NVML_API int nvmlDeviceGetPowerUsage(Handle device, unsigned* milliwatt) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetPowerUsage"), device, Accept::kGpu, &target)) {
    return status;
  }
  return Set(milliwatt, target.gpu.health.power_milliwatt);
}

// NOLINTEND(readability-identifier-naming)

}  // namespace ndp::sim_nvml
