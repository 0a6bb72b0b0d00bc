#include "cdi/gpu_devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "cdi/hooks.h"
#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

// An adapter for a monitor, not for computing. Not offered either.
bool IsDisplayOnly(const inventory::Gpu& gpu) {
  return gpu.name() == "DGX Display" || gpu.name() == "NVIDIA DGX Display";
}

// GPU instance profile numbers with graphics: 1g, 2g, 4g and their successors.
bool HasGraphics(const inventory::MigDevice& mig) {
  auto profile = mig.nvml.gpu_instance_profile;
  return profile == 10U || profile == 11U || profile == 12U || profile == 17U;
}

// The nodes a device cannot work without.
Status AddRequiredNodes(const Discovery& discovery, const std::vector<std::string>& paths,
                        Edits& edits) {
  if (paths.empty()) return Error(Code::kNotFound, "no device node is known");
  for (const std::string& path : paths) NDP_TRY(AddDeviceNode(discovery, path, edits));
  return {};
}

// card1 and renderD128 of a GPU, with the links by which programs find them by PCI address.
void AddDrm(Discovery& discovery, const inventory::Gpu& gpu, Edits& edits) {
  const std::string& bus_id = gpu.pci_bus_id();
  auto names = discovery.host().List(fmt::format("/sys/bus/pci/devices/{}/drm", bus_id));
  std::vector<std::string> nodes;
  for (const std::string& name : names.value_or({})) {
    std::string path = JoinPath("/dev/dri", name);
    if (Status added = AddDeviceNode(discovery, path, edits); added.ok()) {
      nodes.push_back(path);
    } else {
      discovery.Warn(
          fmt::format("GPU {}: {} is left out: {}", gpu.uuid(), path, added.error().message()));
    }
  }
  if (nodes.empty()) return;
  DriverRoot devices(discovery.devices());
  std::vector<std::string> links;
  for (std::string_view kind : {"card", "render"}) {
    std::string link = fmt::format("/dev/dri/by-path/pci-{}-{}", bus_id, kind);
    auto target = devices.ReadLink(link);
    if (!target || !IsPrintablePath(*target)) {
      discovery.Warn(fmt::format("GPU {}: no link {}", gpu.uuid(), link));
      continue;
    }
    if (std::ranges::find(nodes, TargetPath(link, *target)) != nodes.end()) {
      links.push_back(SymlinkArg(*target, link));
    }
  }
  AddSymlinkHook(discovery.options(), links, edits);
}

void AddCoherence(const Options& options, const inventory::Gpu& gpu, Device& device) {
  if (!options.has(config::CdiFeature::kEnableCoherentAnnotations)) return;
  constexpr int kAts = 2;
  device.annotations["gpu.nvidia.com/coherent"] =
      gpu.nvml.addressing_mode == kAts ? "true" : "false";
}

Result<Device> MakeMig(Discovery& discovery, const inventory::Gpu& gpu,
                       const inventory::MigDevice& mig) {
  Device device{.name = DeviceName(discovery.options().naming, gpu, mig)};
  NDP_TRY(ValidateDeviceName(device.name));
  NDP_TRY(AddRequiredNodes(discovery, mig.device_nodes, device.edits));
  if (HasGraphics(mig)) AddDrm(discovery, gpu, device.edits);
  return device;
}

// A device that the inventory knows to be in trouble keeps its entry where its nodes are there: a
// pod that holds it may be restarted, and the trouble may pass. The inventory's reason stands
// where there is no entry.
void Take(GpuDevices& out, const std::string& uuid, const std::string& known_trouble,
          Result<Device> device) {
  if (device.ok() &&
      std::ranges::find(out.devices, device->name, &Device::name) != out.devices.end()) {
    out.troubles[uuid] = fmt::format("another device has the CDI name {} too", device->name);
  } else if (device.ok()) {
    out.devices.push_back(std::move(*device));
  } else {
    out.troubles[uuid] = known_trouble.empty() ? device.error().message() : known_trouble;
  }
}

}  // namespace

Result<Device> MakeGpuDevice(Discovery& discovery, const inventory::Gpu& gpu) {
  Device device{.name = DeviceName(discovery.options().naming, gpu)};
  NDP_TRY(ValidateDeviceName(device.name));
  NDP_TRY(AddRequiredNodes(discovery, gpu.device_nodes, device.edits));
  AddDrm(discovery, gpu, device.edits);
  AddCoherence(discovery.options(), gpu, device);
  return device;
}

std::string DeviceName(Naming naming, const inventory::Gpu& gpu) {
  switch (naming) {
    case Naming::kUuid:
      return gpu.uuid();
    case Naming::kIndex:
      return fmt::format("{}", gpu.index());
    case Naming::kTypeIndex:
      return fmt::format("gpu{}", gpu.index());
  }
  return gpu.uuid();
}

std::string DeviceName(Naming naming, const inventory::Gpu& gpu, const inventory::MigDevice& mig) {
  switch (naming) {
    case Naming::kUuid:
      return mig.nvml.uuid;
    case Naming::kIndex:
      return fmt::format("{}:{}", gpu.index(), mig.nvml.slot);
    case Naming::kTypeIndex:
      return fmt::format("mig{}:{}", gpu.index(), mig.nvml.slot);
  }
  return mig.nvml.uuid;
}

std::string TegraName(Naming naming) {
  inventory::Gpu gpu;
  gpu.nvml.uuid = kTegraId;
  return DeviceName(naming, gpu);
}

GpuDevices DiscoverGpuDevices(Discovery& discovery, const inventory::Inventory& inventory) {
  GpuDevices out;
  for (const inventory::Gpu& gpu : inventory.gpus) {
    if (IsDisplayOnly(gpu)) continue;
    if (gpu.mig_enabled()) {
      out.troubles[gpu.uuid()] = "the GPU is in MIG mode: only its MIG devices have CDI entries";
      continue;
    }
    Take(out, gpu.uuid(), gpu.trouble, MakeGpuDevice(discovery, gpu));
  }
  for (const inventory::Gpu& gpu : inventory.gpus) {
    for (const inventory::MigDevice& mig : gpu.mig) {
      Take(out, mig.nvml.uuid, mig.trouble, MakeMig(discovery, gpu, mig));
    }
  }
  return out;
}

}  // namespace ndp::cdi
