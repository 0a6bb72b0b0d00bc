#include "sim_profile/build.h"

#include <algorithm>
#include <cstring>

#include "sim_state/machine.h"
#include "sim_state/uuid.h"

namespace ndp::sim_profile {
namespace {

using sim_state::Gpu;
using sim_state::Link;
using sim_state::SetText;

constexpr std::uint64_t kMib = std::uint64_t{1024} * 1024;
constexpr std::uint32_t kNvSwitchPciId = 0x22A310DE;
constexpr std::uint32_t kFabricCompleted = 3;

// nvmlDeviceGetTopologyCommonAncestor's levels.
constexpr std::uint8_t kOneSwitch = 10;
constexpr std::uint8_t kHostBridge = 30;
constexpr std::uint8_t kSameNode = 40;
constexpr std::uint8_t kAcross = 50;

// What every data-centre GPU reports: single and double bit ECC, XIDs, and (where rows can be
// remapped, that is on new ones) storms, poison, unavailability and the recovery action.
constexpr std::uint64_t kEvents = 0x1 | 0x2 | 0x8;
constexpr std::uint64_t kNewEvents = 0x1000 | 0x2000 | 0x4000 | 0x8000;

// Field 230 came with driver 565.
bool HasRecoveryAction(const std::string& driver) {
  return std::strtoul(driver.c_str(), nullptr, 10) >= 565;
}

void FillGpu(const GpuSpec& spec, const Profile& profile, const BuildOptions& options,
             std::uint32_t index, Gpu& gpu) {
  const std::string identity = profile.name + "/" + options.seed + "/" + std::to_string(index);
  gpu.present = 1;
  SetText(gpu.uuid, "GPU-" + sim_state::FormatUuid(sim_state::NameUuid(identity)));
  SetText(gpu.name, spec.name);
  SetText(gpu.serial,
          std::to_string(1320000000000U + sim_state::NameUuid(identity)[0] * std::uint64_t{1000} +
                         index));
  gpu.minor = index;
  gpu.pci = spec.pci;
  gpu.pci_id = spec.pci_id;
  gpu.pci_subsystem_id = spec.subsystem_id;
  gpu.pci_class = spec.pci_class;
  gpu.numa_node = spec.numa;
  gpu.memory_numa_node = spec.memory_numa;
  gpu.addressing_mode = spec.addressing_mode;
  gpu.cc_major = spec.cc_major;
  gpu.cc_minor = spec.cc_minor;
  gpu.brand = spec.brand;
  gpu.architecture = spec.architecture;
  gpu.memory_total = spec.memory_mib * kMib;
  gpu.memory_reserved = std::min<std::uint64_t>(spec.memory_mib / 128, 600) * kMib;
  gpu.event_types = spec.row_remapping ? kEvents | kNewEvents : kEvents;
  gpu.mig_model = spec.mig_model;
  gpu.health.recovery_action = HasRecoveryAction(profile.driver) ? 0 : -1;
  gpu.health.remap_supported = spec.row_remapping ? 1 : 0;
  gpu.health.retired_pending = spec.row_remapping ? -1 : 0;
  std::ranges::copy(spec.thresholds, gpu.health.thresholds);
  gpu.health.energy_since_ns = options.now_ns;
  gpu.health.energy_millijoule = 1'000'000'000 + index * 1'000'000U;
  if (profile.fabric_clique) {
    gpu.fabric.state = kFabricCompleted;
    gpu.fabric.clique = *profile.fabric_clique;
    const auto cluster = sim_state::NameUuid(profile.name + "/" + options.seed + "/fabric");
    std::ranges::copy(cluster, gpu.fabric.cluster);
  }
}

std::uint8_t Level(const Profile& profile, std::uint32_t a, std::uint32_t b) {
  if (a == b) return 0;
  if (a < profile.switch_groups.size() && b < profile.switch_groups.size() &&
      profile.switch_groups[a] == profile.switch_groups[b]) {
    return kOneSwitch;
  }
  if (profile.gpus[a].numa != profile.gpus[b].numa) return kAcross;
  return profile.switch_groups.empty() ? kSameNode : kHostBridge;
}

// The first link of a GPU that is not taken; nullptr where all are.
Link* FreeLink(sim_state::Control& control, std::uint32_t slot) {
  for (Link& link : control.links[slot]) {
    if (link.active == 0) return &link;
  }
  return nullptr;
}

Status ConnectPairs(const Profile& profile, std::uint32_t count, sim_state::Control& control) {
  for (const LinkPair& pair : profile.link_pairs) {
    if (pair.a >= count || pair.b >= count) continue;
    for (std::uint32_t i = 0; i < pair.count; ++i) {
      for (const auto& [from, to] : {std::pair(pair.a, pair.b), std::pair(pair.b, pair.a)}) {
        Link* link = FreeLink(control, from);
        if (link == nullptr) {
          return Error(Code::kInvalidArgument, "profile " + profile.name + ": GPU " +
                                                   std::to_string(from) + " has too many links");
        }
        *link = {.active = 1,
                 .remote_type = 0,
                 .remote = profile.gpus[to].pci,
                 .remote_pci_id = profile.gpus[to].pci_id};
      }
    }
  }
  return {};
}

// Links go round the switches, as on a board: neighbouring links end in different ones.
void ConnectSwitches(const Profile& profile, std::uint32_t count, sim_state::Control& control) {
  const std::uint32_t switches = profile.nvswitch_links >= 18 ? 4 : 6;
  for (std::uint32_t gpu = 0; gpu < count; ++gpu) {
    for (std::uint32_t i = 0; i < profile.nvswitch_links; ++i) {
      control.links[gpu][i] = {.active = 1,
                               .remote_type = 2,
                               .remote = {.domain = 0, .bus = 0xE0 + i % switches, .device = 0},
                               .remote_pci_id = kNvSwitchPciId};
    }
  }
}

}  // namespace

Status BuildMachine(const Profile& profile, const BuildOptions& options,
                    sim_state::Control& control) {
  const auto all = static_cast<std::uint32_t>(profile.gpus.size());
  if (options.gpus > all) {
    return Error(Code::kInvalidArgument, "--gpus " + std::to_string(options.gpus) + ": profile " +
                                             profile.name + " has only " + std::to_string(all));
  }
  const std::uint32_t count = options.gpus == 0 ? all : options.gpus;
  SetText(control.profile, profile.name);
  SetText(control.driver_version, profile.driver);
  SetText(control.nvml_version, profile.driver.empty() ? "" : "12." + profile.driver);
  control.cuda_version = profile.cuda;
  control.platform = profile.platform;
  control.imex_channels = profile.imex_channels;
  SetText(control.driver_root, profile.driver_root);
  control.driver_layout = profile.driver_layout;
  control.driver_present = profile.platform == Platform::kNvml || count > 0 ? 1 : 0;
  control.driver_epoch = 1;
  control.gpu_count = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    control.order[i] = i;
    FillGpu(profile.gpus[i], profile, options, i, control.gpus[i]);
    for (std::uint32_t j = 0; j < count; ++j) control.topology[i][j] = Level(profile, i, j);
  }
  ConnectSwitches(profile, count, control);
  return ConnectPairs(profile, count, control);
}

}  // namespace ndp::sim_profile
