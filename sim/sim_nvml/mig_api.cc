// MIG: mode, devices, GPU instances, compute instances.
#include <algorithm>

#include "sim_nvml/call.h"
#include "sim_state/mig_model.h"

namespace ndp::sim_nvml {
namespace {

using Kind = HandleSlot::Kind;
using sim_state::GpuInstanceProfile;
using sim_state::kMaxInstances;
using sim_state::MigModel;

// nullptr where the GPU has no MIG.
const MigModel* ModelOf(const Gpu& gpu) {
  return gpu.mig_model < 0 ? nullptr
                           : &sim_state::MigModels()[static_cast<std::size_t>(gpu.mig_model)];
}

Return BeginMig(unsigned function, Handle device, Accept accept, Target* target) {
  if (const Return status = Begin(function, device, accept, target)) return status;
  if (target->gpu.mig_no_permission != 0) return kNoPermission;
  return ModelOf(target->gpu) == nullptr ? kNotSupported : kSuccess;
}

const GpuInstanceProfile* ProfileOf(const Target& target, std::uint32_t gi_profile) {
  return sim_state::FindProfile(*ModelOf(target.gpu), gi_profile);
}

std::uint32_t ComputeMultiprocessors(const GpuInstanceProfile& profile, std::uint32_t slices) {
  return profile.sm / profile.slices * slices +
         (slices == profile.slices ? profile.sm % profile.slices : 0);
}

Return AttributesOf(unsigned function, Handle device, Attributes* attributes) {
  Target target;
  if (const Return status = BeginMig(function, device, Accept::kMig, &target)) return status;
  if (attributes == nullptr) return kInvalidArgument;
  const GpuInstanceProfile* profile = ProfileOf(target, target.instance().profile);
  if (profile == nullptr) return kNotFound;
  const std::uint32_t slices = target.device().size;
  *attributes = {.multiprocessor_count = ComputeMultiprocessors(*profile, slices),
                 .copy = profile->copy,
                 .decoder = profile->decoder,
                 .encoder = profile->encoder,
                 .jpeg = profile->jpeg,
                 .ofa = profile->ofa,
                 .gi_slices = profile->slices,
                 .ci_slices = slices,
                 .memory_mib = profile->memory_mib};
  return kSuccess;
}

Return ComputeInfo(unsigned function, Handle handle, ComputeInstanceInfo* info) {
  Target target;
  if (const Return status = BeginMig(function, handle, Accept::kComputeInstance, &target)) {
    return status;
  }
  const auto& device = target.device();
  if (info == nullptr || device.used == 0) return kInvalidArgument;
  Library& library = Library::Get();
  Handle instance = nullptr;
  for (unsigned i = 0; i < kMaxInstances; ++i) {
    const auto& candidate = target.mig().instances[i];
    if (candidate.used != 0 && candidate.id == device.gi_id) {
      instance = library.ToHandle(Kind::kGpuInstance, target.index, i);
    }
  }
  *info = {.device = library.ToHandle(Kind::kGpu, target.index),
           .gpu_instance = instance,
           .id = device.ci_id,
           .profile_id = device.ci_profile,
           .placement = {.start = device.start, .size = device.size}};
  return kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

NVML_API int nvmlDeviceGetMigMode(Handle device, unsigned* current, unsigned* pending) {
  Target target;
  if (const Return status =
          BeginMig(FunctionId("nvmlDeviceGetMigMode"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (current == nullptr) return kInvalidArgument;
  *current = target.gpu.mig_current;
  return Set(pending, target.gpu.mig_pending);
}

// Needs the GPU for itself, which a client that has it open does not leave it: the mode is pending
// until the next reset, and the activation tells why.
NVML_API int nvmlDeviceSetMigMode(Handle device, unsigned mode, int* activation) {
  Target target;
  if (const Return status =
          BeginMig(FunctionId("nvmlDeviceSetMigMode"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (mode > 1 || activation == nullptr) return kInvalidArgument;
  const auto written = Library::Get().machine()->Write([&](sim_state::Control& control) {
    control.gpus[target.slot].mig_pending = mode;
    return ndp::Status();
  });
  if (!written.ok()) return kNoPermission;
  *activation = target.gpu.mig_current == mode ? kSuccess : kInUse;
  return kSuccess;
}

NVML_API int nvmlDeviceGetMaxMigDeviceCount(Handle device, unsigned* count) {
  Target target;
  if (const Return status =
          BeginMig(FunctionId("nvmlDeviceGetMaxMigDeviceCount"), device, Accept::kGpu, &target)) {
    // NVML says 0, not NOT_SUPPORTED, of a GPU that has no MIG.
    const bool without_mig = target.gpu.present != 0 && target.gpu.mig_model < 0;
    return status == kNotSupported && without_mig ? Set(count, 0) : status;
  }
  if (target.gpu.mig_current == 0) return Set(count, 0);
  return Set(count, ModelOf(target.gpu)->max_devices);
}

NVML_API int nvmlDeviceGetMigDeviceHandleByIndex(Handle device, unsigned index, Handle* mig) {
  Target target;
  if (const Return status = BeginMig(FunctionId("nvmlDeviceGetMigDeviceHandleByIndex"), device,
                                     Accept::kGpu, &target)) {
    return status;
  }
  if (index >= ModelOf(target.gpu)->max_devices || mig == nullptr) return kInvalidArgument;
  if (target.mig().devices[index].used == 0) return kNotFound;
  return Set(mig, Library::Get().ToHandle(Kind::kMig, target.index, index));
}

NVML_API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Handle mig, Handle* device) {
  Target target;
  if (const Return status = BeginMig(FunctionId("nvmlDeviceGetDeviceHandleFromMigDeviceHandle"),
                                     mig, Accept::kMig, &target)) {
    return status;
  }
  return Set(device, Library::Get().ToHandle(Kind::kGpu, target.index));
}

NVML_API int nvmlDeviceIsMigDeviceHandle(Handle device, unsigned* is_mig) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceIsMigDeviceHandle"), device, Accept::kGpuOrMig, &target)) {
    return status;
  }
  return Set(is_mig, target.sub ? 1 : 0);
}

NVML_API int nvmlDeviceGetGpuInstanceId(Handle mig, unsigned* id) {
  Target target;
  if (const Return status =
          BeginMig(FunctionId("nvmlDeviceGetGpuInstanceId"), mig, Accept::kMig, &target)) {
    return status;
  }
  return Set(id, target.device().gi_id);
}

NVML_API int nvmlDeviceGetComputeInstanceId(Handle mig, unsigned* id) {
  Target target;
  if (const Return status =
          BeginMig(FunctionId("nvmlDeviceGetComputeInstanceId"), mig, Accept::kMig, &target)) {
    return status;
  }
  return Set(id, target.device().ci_id);
}

NVML_API int nvmlDeviceGetAttributes(Handle mig, Attributes* attributes) {
  return AttributesOf(FunctionId("nvmlDeviceGetAttributes"), mig, attributes);
}
NVML_API int nvmlDeviceGetAttributes_v2(Handle mig, Attributes* attributes) {
  return AttributesOf(FunctionId("nvmlDeviceGetAttributes_v2"), mig, attributes);
}

NVML_API int nvmlDeviceGetGpuInstanceProfileInfo(Handle device, unsigned profile,
                                                 GpuInstanceProfileInfo* info) {
  Target target;
  if (const Return status = BeginMig(FunctionId("nvmlDeviceGetGpuInstanceProfileInfo"), device,
                                     Accept::kGpu, &target)) {
    return status;
  }
  if (info == nullptr) return kInvalidArgument;
  const GpuInstanceProfile* found = ProfileOf(target, profile);
  if (found == nullptr || target.gpu.mig_current == 0) return kNotSupported;
  *info = {.id = found->id,
           .p2p = 0,
           .slices = found->slices,
           .instances = found->instances,
           .multiprocessor_count = found->sm,
           .copy = found->copy,
           .decoder = found->decoder,
           .encoder = found->encoder,
           .jpeg = found->jpeg,
           .ofa = found->ofa,
           .memory_mib = found->memory_mib};
  return kSuccess;
}

NVML_API int nvmlDeviceGetGpuInstances(Handle device, unsigned profile_id, Handle* instances,
                                       unsigned* count) {
  Target target;
  if (const Return status =
          BeginMig(FunctionId("nvmlDeviceGetGpuInstances"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (instances == nullptr || count == nullptr) return kInvalidArgument;
  *count = 0;
  for (unsigned i = 0; i < kMaxInstances; ++i) {
    const auto& instance = target.mig().instances[i];
    if (instance.used == 0) continue;
    const GpuInstanceProfile* profile = ProfileOf(target, instance.profile);
    if (profile == nullptr || profile->id != profile_id) continue;
    instances[(*count)++] = Library::Get().ToHandle(Kind::kGpuInstance, target.index, i);
  }
  return kSuccess;
}

NVML_API int nvmlDeviceGetGpuInstanceById(Handle device, unsigned id, Handle* instance) {
  Target target;
  if (const Return status =
          BeginMig(FunctionId("nvmlDeviceGetGpuInstanceById"), device, Accept::kGpu, &target)) {
    return status;
  }
  for (unsigned i = 0; i < kMaxInstances; ++i) {
    if (target.mig().instances[i].used != 0 && target.mig().instances[i].id == id) {
      return Set(instance, Library::Get().ToHandle(Kind::kGpuInstance, target.index, i));
    }
  }
  return kNotFound;
}

NVML_API int nvmlGpuInstanceGetInfo(Handle handle, GpuInstanceInfo* info) {
  Target target;
  if (const Return status =
          BeginMig(FunctionId("nvmlGpuInstanceGetInfo"), handle, Accept::kGpuInstance, &target)) {
    return status;
  }
  const auto& instance = target.mig().instances[*target.sub];
  const GpuInstanceProfile* profile = ProfileOf(target, instance.profile);
  if (info == nullptr || instance.used == 0 || profile == nullptr) return kInvalidArgument;
  *info = {.device = Library::Get().ToHandle(Kind::kGpu, target.index),
           .id = instance.id,
           .profile_id = profile->id,
           .placement = {.start = instance.start, .size = instance.size}};
  return kSuccess;
}

NVML_API int nvmlGpuInstanceGetComputeInstanceProfileInfo(Handle handle, unsigned profile,
                                                          unsigned engine,
                                                          ComputeInstanceProfileInfo* info) {
  Target target;
  if (const Return status = BeginMig(FunctionId("nvmlGpuInstanceGetComputeInstanceProfileInfo"),
                                     handle, Accept::kGpuInstance, &target)) {
    return status;
  }
  const auto& instance = target.mig().instances[*target.sub];
  if (info == nullptr || instance.used == 0 || engine != 0) return kInvalidArgument;
  const GpuInstanceProfile* gi = ProfileOf(target, instance.profile);
  const std::uint32_t slices = sim_state::ComputeProfileSlices(profile);
  if (gi == nullptr || slices == 0 || slices > gi->slices) return kNotSupported;
  *info = {.id = profile,
           .slices = slices,
           .instances = gi->slices / slices,
           .multiprocessor_count = ComputeMultiprocessors(*gi, slices),
           .copy = gi->copy,
           .decoder = gi->decoder,
           .encoder = gi->encoder,
           .jpeg = gi->jpeg,
           .ofa = gi->ofa};
  return kSuccess;
}

NVML_API int nvmlGpuInstanceGetComputeInstances(Handle handle, unsigned profile_id,
                                                Handle* instances, unsigned* count) {
  Target target;
  if (const Return status = BeginMig(FunctionId("nvmlGpuInstanceGetComputeInstances"), handle,
                                     Accept::kGpuInstance, &target)) {
    return status;
  }
  const auto& instance = target.mig().instances[*target.sub];
  if (instances == nullptr || count == nullptr || instance.used == 0) return kInvalidArgument;
  *count = 0;
  for (unsigned i = 0; i < kMaxInstances; ++i) {
    const auto& device = target.mig().devices[i];
    if (device.used == 0 || device.gi_id != instance.id || device.ci_profile != profile_id) {
      continue;
    }
    instances[(*count)++] = Library::Get().ToHandle(Kind::kComputeInstance, target.index, i);
  }
  return kSuccess;
}

NVML_API int nvmlGpuInstanceGetComputeInstanceById(Handle handle, unsigned id, Handle* compute) {
  Target target;
  if (const Return status = BeginMig(FunctionId("nvmlGpuInstanceGetComputeInstanceById"), handle,
                                     Accept::kGpuInstance, &target)) {
    return status;
  }
  const auto& instance = target.mig().instances[*target.sub];
  if (instance.used == 0) return kInvalidArgument;
  for (unsigned i = 0; i < kMaxInstances; ++i) {
    const auto& device = target.mig().devices[i];
    if (device.used != 0 && device.gi_id == instance.id && device.ci_id == id) {
      return Set(compute, Library::Get().ToHandle(Kind::kComputeInstance, target.index, i));
    }
  }
  return kNotFound;
}

NVML_API int nvmlComputeInstanceGetInfo(Handle compute, ComputeInstanceInfo* info) {
  return ComputeInfo(FunctionId("nvmlComputeInstanceGetInfo"), compute, info);
}
NVML_API int nvmlComputeInstanceGetInfo_v2(Handle compute, ComputeInstanceInfo* info) {
  return ComputeInfo(FunctionId("nvmlComputeInstanceGetInfo_v2"), compute, info);
}

// NOLINTEND(readability-identifier-naming)

}  // namespace ndp::sim_nvml
