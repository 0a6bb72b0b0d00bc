// How GPUs hang together.
#include "sim_nvml/call.h"
#include "sim_nvml/text.h"

namespace ndp::sim_nvml {
namespace {

using sim_state::Control;
using sim_state::kMaxLinks;
using sim_state::Link;

// Links are numbered up to what the GPU has; a GPU without NVLink has none of them.
Return LinkOf(unsigned function, Handle device, unsigned link, Target* target, Link* out) {
  if (const Return status = Begin(function, device, Accept::kGpu, target)) return status;
  if (link >= kMaxLinks) return kInvalidArgument;
  *out = Library::Get().machine()->Read(
      [&](const Control& control) { return control.links[target->slot][link]; });
  return out->active == 0 && out->remote_type == 255 ? kNotSupported : kSuccess;
}

Return RemotePci(unsigned function, Handle device, unsigned link, PciInfo* pci) {
  Target target;
  Link found;
  if (const Return status = LinkOf(function, device, link, &target, &found)) return status;
  if (pci == nullptr) return kInvalidArgument;
  if (found.active == 0) return kNotSupported;
  FillPci(found.remote, found.remote_pci_id, 0, pci);
  return kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

NVML_API int nvmlDeviceGetTopologyCommonAncestor(Handle device1, Handle device2, int* level) {
  constexpr unsigned kFunction = FunctionId("nvmlDeviceGetTopologyCommonAncestor");
  Target first;
  if (const Return status = Begin(kFunction, device1, Accept::kGpu, &first)) return status;
  Library& library = Library::Get();
  const HandleSlot* second = library.Resolve(device2);
  if (second == nullptr || second->kind != HandleSlot::Kind::kGpu ||
      second->index >= first.view->gpu_count || level == nullptr) {
    return kInvalidArgument;
  }
  const std::uint32_t slot = first.view->order[second->index];
  if (const Return fault =
          library.Faults(kFunction, static_cast<int>(slot), Library::Play::kOfGpuOnly)) {
    return fault;
  }
  if (const Return state = library.AwaitGpu(slot)) return state;
  return Set(level, library.machine()->control().topology[first.slot][slot]);
}

NVML_API int nvmlDeviceGetTopologyNearestGpus(Handle device, int level, unsigned* count,
                                              Handle* devices) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetTopologyNearestGpus"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (count == nullptr) return kInvalidArgument;
  Library& library = Library::Get();
  const unsigned room = devices == nullptr ? 0 : *count;
  unsigned found = 0;
  for (unsigned i = 0; i < target.view->gpu_count; ++i) {
    if (i == target.index) continue;
    if (library.machine()->control().topology[target.slot][target.view->order[i]] != level)
      continue;
    if (found < room) devices[found] = library.ToHandle(HandleSlot::Kind::kGpu, i);
    ++found;
  }
  *count = found;
  return kSuccess;
}

NVML_API int nvmlDeviceGetNvLinkState(Handle device, unsigned link, int* active) {
  Target target;
  Link found;
  if (const Return status =
          LinkOf(FunctionId("nvmlDeviceGetNvLinkState"), device, link, &target, &found)) {
    return status;
  }
  return Set(active, found.active);
}

NVML_API int nvmlDeviceGetNvLinkVersion(Handle device, unsigned link, unsigned* version) {
  Target target;
  Link found;
  if (const Return status =
          LinkOf(FunctionId("nvmlDeviceGetNvLinkVersion"), device, link, &target, &found)) {
    return status;
  }
  // NVLink generations go with the architectures from Volta (2) on: Ampere 3, Hopper 4, ...
  const std::uint32_t architecture = target.gpu.architecture;
  return Set(version, architecture <= 6 ? 2 : architecture == 7 ? 3 : architecture <= 9 ? 4 : 5);
}

NVML_API int nvmlDeviceGetNvLinkRemotePciInfo(Handle device, unsigned link, PciInfo* pci) {
  return RemotePci(FunctionId("nvmlDeviceGetNvLinkRemotePciInfo"), device, link, pci);
}
NVML_API int nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle device, unsigned link, PciInfo* pci) {
  return RemotePci(FunctionId("nvmlDeviceGetNvLinkRemotePciInfo_v2"), device, link, pci);
}

NVML_API int nvmlDeviceGetNvLinkRemoteDeviceType(Handle device, unsigned link, int* type) {
  Target target;
  Link found;
  if (const Return status = LinkOf(FunctionId("nvmlDeviceGetNvLinkRemoteDeviceType"), device, link,
                                   &target, &found)) {
    return status;
  }
  return Set(type, found.remote_type);
}

// NOLINTEND(readability-identifier-naming)

}  // namespace ndp::sim_nvml
