#include "cdi/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cdi/canonical.h"
#include "cdi/control_nodes.h"
#include "cdi/discovery.h"
#include "cdi/driver_files.h"
#include "cdi/extra_classes.h"
#include "cdi/gpu_devices.h"
#include "cdi/graphics.h"
#include "cdi/hooks.h"
#include "cdi/libraries.h"
#include "cdi/names.h"
#include "cdi/tegra.h"
#include "cdi/validate.h"
#include "cdi/wsl.h"
#include "cdi/wsl_store.h"

namespace ndp::cdi {
namespace {

// Keeps the container runtime's older hook from injecting the GPUs a second time.
constexpr std::string_view kNoLegacyInjection = "NVIDIA_VISIBLE_DEVICES=void";

// What every container with a GPU gets, in upstream's order.
Result<Edits> CommonGpuEdits(Discovery& discovery, const inventory::Inventory& inventory) {
  const Options& options = discovery.options();
  LibraryLocator locator(discovery.driver());
  NDP_TRY(DriverLibraries driver,
          DiscoverLibraries(discovery, locator, inventory.driver.driver_version));
  Edits edits;
  AddControlNodes(discovery, edits);
  edits.Append(DiscoverGraphics(discovery, locator, driver));
  edits.env.push_back(fmt::format("NVIDIA_CTK_LIBCUDA_DIR={}", Join(driver.folders, ":")));
  edits.env.emplace_back(kNoLegacyInjection);
  for (const std::string& file : driver.files) AddMount(discovery, file, edits);
  AddSymlinkHook(options, LibraryLinks(discovery, driver.files), edits);
  AddHook(options, kEnableCudaCompat, {fmt::format("--host-driver-version={}", driver.version)},
          edits);
  AddLdcacheHook(options, LdcacheFolders(driver.files), edits);
  AddHook(options, kDisableDeviceNodeModification, {}, edits);
  AddSockets(discovery, edits);
  AddFirmware(discovery, driver.version, edits);
  AddPrograms(discovery, edits);
  AddHook(options, kUpdateApplicationProfile, {}, edits);
  return edits;
}

struct GpuClass {
  GpuDevices devices;
  Edits common;
};

Result<GpuClass> DiscoverGpuClass(Discovery& discovery, const inventory::Inventory& inventory) {
  GpuClass out;
  switch (inventory.platform) {
    case inventory::Platform::kNvml: {
      out.devices = DiscoverGpuDevices(discovery, inventory);
      if (out.devices.devices.empty()) return out;
      NDP_TRY(out.common, CommonGpuEdits(discovery, inventory));
      return out;
    }
    case inventory::Platform::kTegra: {
      NDP_TRY(TegraSpec tegra, DiscoverTegra(discovery, inventory));
      out = {.devices = std::move(tegra.gpus), .common = std::move(tegra.common)};
      break;
    }
    case inventory::Platform::kWsl: {
      NDP_TRY(WslSpec wsl, DiscoverWsl(discovery, FindDriverStores(discovery.driver())));
      out.devices.devices = {std::move(wsl.all)};
      out.common = std::move(wsl.common);
      break;
    }
    case inventory::Platform::kUnknown:
      return out;
  }
  out.common.env.emplace_back(kNoLegacyInjection);
  return out;
}

// One device more, with what all of them have, in the order in which the file has them.
void AddAllDevice(Spec& spec) {
  if (spec.devices.empty() || spec.Find("all") != nullptr) return;
  std::ranges::stable_sort(spec.devices, {}, &Device::name);
  Device all{.name = "all"};
  for (const Device& device : spec.devices) all.edits.Append(device.edits);
  spec.devices.push_back(std::move(all));
}

class Builder {
 public:
  Builder(const Options& options, const os::HostFs& driver, const os::HostFs& host)
      : options_(options), discovery_(options, driver, host) {}

  void AddGpus(const inventory::Inventory& inventory) {
    auto gpus = DiscoverGpuClass(discovery_, inventory);
    if (!gpus.ok()) {
      built_.gpu_trouble = gpus.error().message();
      return;
    }
    built_.troubles = std::move(gpus->devices.troubles);
    if (gpus->devices.devices.empty()) return;
    Spec spec{.devices = std::move(gpus->devices.devices), .edits = std::move(gpus->common)};
    if (options_.all_device) AddAllDevice(spec);
    if (Status added = Add(options_.gpu_class, std::move(spec)); !added.ok()) {
      built_.gpu_trouble = added.error().message();
    }
  }

  void AddImex() {
    if (options_.imex_channels.empty()) return;
    ImexChannels channels = DiscoverImexChannels(discovery_, options_.imex_channels);
    if (!channels.missing.empty()) {
      std::string reason =
          fmt::format("IMEX channel {} is not there (/dev/nvidia-caps-imex-channels)",
                      fmt::join(channels.missing, ", "));
      if (options_.imex_required) {
        built_.imex_trouble = std::move(reason);
      } else {
        discovery_.Warn(reason + ", containers go without");
      }
    }
    if (channels.devices.empty()) {
      built_.dropped.emplace(kImexClass);
    } else {
      AddOrWarn(kImexClass, Spec{.devices = std::move(channels.devices)});
    }
  }

  void AddExtra(std::string_view device_class, bool enabled) {
    if (!enabled) return;
    Spec spec;
    spec.devices = {{.name = "all", .edits = DiscoverExtraClass(discovery_, device_class)}};
    if (spec.devices.front().edits.empty()) {
      built_.dropped.emplace(device_class);
      discovery_.Warn(fmt::format("{} is enabled, but the node has no device of it", device_class));
      return;
    }
    spec.edits.env = {std::string(kNoLegacyInjection)};
    AddOrWarn(device_class, std::move(spec));
  }

  Built Take() {
    built_.warnings = discovery_.TakeWarnings();
    return std::move(built_);
  }

 private:
  Status Add(std::string_view device_class, Spec spec) {
    spec.kind = fmt::format("{}/{}", options_.vendor, device_class);
    Simplify(spec);
    spec.version = MinimumVersion(spec);
    NDP_TRY(Validate(spec).Context(spec.kind));
    built_.specs.push_back({std::string(device_class), std::move(spec)});
    return {};
  }

  void AddOrWarn(std::string_view device_class, Spec spec) {
    if (Status added = Add(device_class, std::move(spec)); !added.ok()) {
      built_.dropped.emplace(device_class);
      discovery_.Warn(added.error().message());
    }
  }

  const Options& options_;
  Discovery discovery_;
  Built built_;
};

}  // namespace

const Spec* Built::Find(std::string_view device_class) const {
  auto found = std::ranges::find(specs, device_class, &ClassSpec::device_class);
  return found == specs.end() ? nullptr : &found->spec;
}

std::vector<std::string> Built::ExtraNames() const {
  std::vector<std::string> names;
  for (std::string_view device_class : {kImexClass, kGdrCopyClass, kGdsClass, kMofedClass}) {
    const Spec* spec = Find(device_class);
    if (spec == nullptr) continue;
    for (const Device& device : spec->devices) {
      names.push_back(fmt::format("{}={}", spec->kind, device.name));
    }
  }
  return names;
}

Built Build(const Options& options, const inventory::Inventory& inventory, const os::HostFs& driver,
            const os::HostFs& host) {
  Builder builder(options, driver, host);
  builder.AddGpus(inventory);
  builder.AddImex();
  builder.AddExtra(kGdrCopyClass, options.gdrcopy);
  builder.AddExtra(kGdsClass, options.gds);
  builder.AddExtra(kMofedClass, options.mofed);
  return builder.Take();
}

std::vector<std::string> PresentExtras(const Options& options, const os::HostFs& driver,
                                       const os::HostFs& host) {
  const Discovery discovery(options, driver, host);
  std::vector<std::string> nodes;
  const auto add = [&nodes](const Edits& edits) {
    for (const DeviceNode& node : edits.device_nodes) nodes.push_back(node.path);
  };
  for (const Device& channel : DiscoverImexChannels(discovery, options.imex_channels).devices) {
    add(channel.edits);
  }
  if (options.gdrcopy) add(DiscoverExtraClass(discovery, kGdrCopyClass));
  if (options.gds) add(DiscoverExtraClass(discovery, kGdsClass));
  if (options.mofed) add(DiscoverExtraClass(discovery, kMofedClass));
  return nodes;
}

void KeepHeld(Spec& fresh, const Spec& previous, const std::set<std::string>& held) {
  for (const Device& device : previous.devices) {
    if (held.contains(device.name) && fresh.Find(device.name) == nullptr) {
      fresh.devices.push_back(device);
    }
  }
  std::ranges::stable_sort(fresh.devices, {}, &Device::name);
  fresh.version = MinimumVersion(fresh);
}

}  // namespace ndp::cdi
