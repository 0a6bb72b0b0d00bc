#include "resource/offered_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "resource/mig_layout.h"

namespace ndp::resource {
namespace {

constexpr std::string_view kGpuResource = "nvidia.com/gpu";
constexpr std::string_view kMigPrefix = "nvidia.com/mig-";

class Offering {
 public:
  Offering(const config::Settings& settings, const inventory::Inventory& inventory)
      : settings_(settings), inventory_(inventory) {}

  // All GPUs behind one device: Tegra has no NVML, WSL no device nodes to tell GPUs apart by.
  void AddAll(std::string_view uuid, std::string_view index, std::vector<std::string> nodes) {
    Device device;
    device.uuid = uuid;
    device.index = index;
    device.gpu_uuid = uuid;
    device.device_nodes = std::move(nodes);
    Add(std::move(device), settings_.names.gpus, uuid, kGpuResource);
  }

  void AddGpu(int position, std::string_view trouble) {
    const inventory::Gpu& gpu = At(position);
    Device device = Base(position);
    device.uuid = gpu.uuid();
    device.index = std::to_string(gpu.index());
    device.device_nodes = gpu.device_nodes;
    device.trouble = gpu.trouble.empty() ? trouble : gpu.trouble;
    // By UUID or index the runtime finds the node itself.
    if (device.trouble.empty() && device.device_nodes.empty() &&
        settings_.plugin.pass_device_specs && settings_.plugin.uses_non_cdi()) {
      device.trouble = "its minor number is unknown, so its device node is too";
    }
    Add(std::move(device), settings_.names.gpus, gpu.name(), kGpuResource);
  }

  // `name` empty: one for each profile.
  void AddMigDevices(int position, std::string_view trouble, std::string_view name) {
    const inventory::Gpu& gpu = At(position);
    if (gpu.mig.empty()) return NoteWithoutMig(gpu);
    for (const inventory::MigDevice& mig : gpu.mig) {
      Device device = Base(position);
      device.uuid = mig.nvml.uuid;
      device.index = fmt::format("{}:{}", gpu.index(), mig.nvml.slot);
      device.mig_slot = mig.nvml.slot;
      device.gpu_instance = mig.nvml.gpu_instance;
      device.compute_instance = mig.nvml.compute_instance;
      device.profile = mig.profile;
      device.device_nodes = mig.device_nodes;
      device.trouble = !gpu.trouble.empty()   ? gpu.trouble
                       : !mig.trouble.empty() ? mig.trouble
                                              : std::string(trouble);
      if (mig.profile.empty() && name.empty()) {
        // No name tells what it is, so it must not have one.
        Refuse(device.index, device.uuid,
               mig.trouble.empty() ? "its MIG profile cannot be told" : mig.trouble);
        continue;
      }
      const std::string own = name.empty() ? MigResourceName(mig.profile) : std::string(name);
      Add(std::move(device), settings_.names.mig, mig.profile, own);
    }
  }

  void Refuse(std::string index, std::string uuid, std::string reason) {
    out_.not_offered.push_back({std::move(index), std::move(uuid), std::move(reason)});
  }

  OfferedDevices Take() {
    for (auto& [name, devices] : out_.by_resource) {
      std::ranges::stable_sort(devices, {}, [](const Device& device) {
        return std::tuple(device.gpu_index, device.mig_slot, device.uuid);
      });
    }
    NoteUnusedRules(settings_.names.gpus, "GPU", gpu_names_);
    NoteUnusedRules(settings_.names.mig, "MIG profile", profiles_);
    return std::move(out_);
  }

 private:
  const inventory::Gpu& At(int position) const {
    return inventory_.gpus[static_cast<std::size_t>(position)];
  }

  Device Base(int position) const {
    const inventory::Gpu& gpu = At(position);
    Device device;
    device.gpu = position;
    device.gpu_index = gpu.index();
    device.gpu_uuid = gpu.uuid();
    device.numa_node = gpu.numa_node;
    return device;
  }

  void Add(Device device, const std::vector<config::NameRule>& rules, std::string_view subject,
           std::string_view otherwise) {
    (device.mig() ? profiles_ : gpu_names_).emplace(subject);
    const auto rule = std::ranges::find_if(rules, [subject](const config::NameRule& it) {
      return WildcardMatch(it.pattern, subject);
    });
    const std::string name = rule == rules.end() ? std::string(otherwise) : rule->resource;
    out_.by_resource[name].push_back(std::move(device));
  }

  void NoteWithoutMig(const inventory::Gpu& gpu) {
    const std::string index = std::to_string(gpu.index());
    std::string reason = "it is in MIG mode and has no MIG devices";
    if (!gpu.trouble.empty()) {
      reason = gpu.trouble;
    } else if (gpu.nvml.mig_failure) {
      reason = "its MIG devices cannot be read: " + gpu.nvml.mig_failure->Message();
    } else {
      out_.warnings.push_back(
          fmt::format("GPU {} ({}) is not offered: {}", index, gpu.uuid(), reason));
    }
    Refuse(index, gpu.uuid(), std::move(reason));
  }

  void NoteUnusedRules(const std::vector<config::NameRule>& rules, std::string_view kind,
                       const std::set<std::string>& subjects) {
    if (subjects.empty()) return;
    const std::vector<std::string> names(subjects.begin(), subjects.end());
    for (const config::NameRule& rule : rules) {
      const bool used = std::ranges::any_of(
          names, [&rule](const std::string& name) { return WildcardMatch(rule.pattern, name); });
      if (used) continue;
      out_.warnings.push_back(fmt::format("{}: pattern \"{}\" matches no {}: there is {}",
                                          rule.where.Text(), rule.pattern, kind,
                                          Join(names, ", ")));
    }
  }

  const config::Settings& settings_;
  const inventory::Inventory& inventory_;
  OfferedDevices out_;
  std::set<std::string> gpu_names_;  // of the devices offered, for the warnings
  std::set<std::string> profiles_;
};

}  // namespace

std::string MigResourceName(std::string_view profile) {
  std::string name = std::string(kMigPrefix) + std::string(profile);
  std::ranges::replace(name, '+', '.');
  return name;
}

OfferedDevices OfferDevices(const config::Settings& settings, const inventory::Inventory& inventory,
                            const Selection& selection, const MigLayouts& layouts,
                            const MigLayouts* previous_scan) {
  Offering offering(settings, inventory);
  if (inventory.platform == inventory::Platform::kTegra) {
    offering.AddAll("tegra", "0", {});
    return offering.Take();
  }
  if (inventory.platform == inventory::Platform::kWsl) {
    // Without NVML nobody counts the GPUs: /dev/dxg is all of them, however many.
    const bool uncounted = inventory.driver.driver_version.empty() && inventory.broken.empty();
    if (!selection.gpus.empty() || uncounted) offering.AddAll("all", "all", {"/dev/dxg"});
    return offering.Take();
  }

  const config::MigStrategy strategy = settings.common.mig_strategy;
  SingleDecision single;
  if (strategy == config::MigStrategy::kSingle) {
    single = DecideSingle(inventory, selection.gpus, settings.plugin.mig_single_partial, layouts,
                          previous_scan);
  }
  for (const int position : selection.gpus) {
    const inventory::Gpu& gpu = inventory.gpus[static_cast<std::size_t>(position)];
    const bool mig = gpu.mig_enabled() && strategy != config::MigStrategy::kNone;
    std::string trouble;
    if (strategy == config::MigStrategy::kSingle && single.served != LayoutOf(gpu)) {
      trouble = single.reason;
    }
    if (!mig && strategy != config::MigStrategy::kNone && gpu.nvml.mig_failure) {
      // It may be in MIG mode: a slice must not be handed out as a whole GPU.
      trouble = "its MIG mode cannot be read: " + gpu.nvml.mig_failure->Message();
    }
    if (mig) {
      offering.AddMigDevices(position, trouble,
                             strategy == config::MigStrategy::kSingle ? kGpuResource : "");
    } else {
      offering.AddGpu(position, trouble);
    }
  }
  for (const inventory::BrokenGpu& broken : inventory.broken) {
    // One that was there before is listed on, Unhealthy, while it is lost.
    const bool listed = std::ranges::any_of(
        inventory.gpus, [&](const inventory::Gpu& gpu) { return gpu.index() == broken.index; });
    if (listed) continue;
    offering.Refuse(std::to_string(broken.index), "", broken.reason);
  }
  return offering.Take();
}

}  // namespace ndp::resource
