#include "plugin/allocate.h"

#include <fmt/format.h>

#include <algorithm>

#include "resource/preferred.h"

namespace ndp::plugin {
namespace {

constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kMountedDevices = "/var/run/nvidia-container-devices";

// A random (version 4) UUID.
std::string RandomUuid(std::mt19937_64& random) {
  const std::uint64_t high = (random() & ~0xF000ULL) | 0x4000ULL;
  const std::uint64_t low = (random() & ~(3ULL << 62)) | (2ULL << 62);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xFFFF,
                     high & 0xFFFF, low >> 48, low & 0xFFFFFFFFFFFFULL);
}

// The units asked for, by index, once each.
Result<std::vector<std::size_t>> ResolveUnits(const ResourceView& view,
                                              std::span<const std::string_view> ids) {
  std::vector<std::uint32_t> slots;
  slots.reserve(ids.size());
  for (const std::string_view id : ids) {
    const auto slot = view.pool().Find(id);
    if (!slot) {
      return Error(Code::kNotFound,
                   fmt::format("unknown device id '{}': it is none of the {} ids of {}", id,
                               view.pool().size(), view.name()));
    }
    slots.push_back(*slot);
  }
  std::ranges::sort(slots);
  slots.erase(std::ranges::unique(slots).begin(), slots.end());
  std::vector<std::size_t> units;
  bool replicas = false;
  for (const std::uint32_t slot : slots) {
    const std::size_t unit = view.pool().DeviceOf(slot);
    replicas = replicas || view.units()[unit].replicas > 0;
    if (units.empty() || units.back() != unit) units.push_back(unit);
  }
  if (view.options().fail_requests_greater_than_one && replicas && slots.size() > 1) {
    return Error(Code::kInvalidArgument,
                 fmt::format("maximum request size for the shared resource {} is 1; found {} "
                             "(failRequestsGreaterThanOne)",
                             view.name(), slots.size()));
  }
  return units;
}

std::string JoinVisibleIds(const ResourceView& view, const std::vector<std::size_t>& units) {
  std::string out;
  for (const std::size_t unit : units) {
    if (!out.empty()) out += ',';
    out += view.unit(unit).visible_id;
  }
  return out;
}

void AddCdi(const ResourceView& view, const std::vector<std::size_t>& units,
            std::mt19937_64& random, ContainerAnswer& answer) {
  const AllocateOptions& options = view.options();
  if (!options.cdi_annotations && !options.cdi_cri) return;
  std::vector<std::string_view> names;
  for (const std::size_t unit : units) {
    if (view.units()[unit].cdi) names.push_back(view.unit(unit).cdi_name);
  }
  const auto& common = view.prepared().cdi_names;
  names.insert(names.end(), common.begin(), common.end());
  if (names.empty()) return;
  if (options.cdi_annotations) {
    answer.annotation.emplace(
        fmt::format("{}nvidia-device-plugin_{}", options.cdi_annotation_prefix, RandomUuid(random)),
        fmt::format("{}", fmt::join(names, ",")));
  }
  if (options.cdi_cri) answer.cdi_names = std::move(names);
}

void AddSpecs(const ResourceView& view, const std::vector<std::size_t>& units,
              ContainerAnswer& answer) {
  auto& specs = answer.device_specs;
  // MIG devices of one GPU share the GPU's node.
  const auto add = [&specs](const ResourceView::DeviceSpec& spec) {
    const bool there = std::ranges::any_of(
        specs, [&spec](const auto* other) { return other->container_path == spec.container_path; });
    if (!there) specs.push_back(&spec);
  };
  for (const std::size_t unit : units) std::ranges::for_each(view.unit(unit).specs, add);
  std::ranges::for_each(view.prepared().control_specs, add);
  std::ranges::for_each(view.prepared().imex_specs, add);
}

}  // namespace

Result<ContainerAnswer> Allocate(const ResourceView& view, std::span<const std::string_view> ids,
                                 std::mt19937_64& random) {
  ContainerAnswer answer;
  if (ids.empty()) return answer;
  const AllocateOptions& options = view.options();
  NDP_TRY(const std::vector<std::size_t> units, ResolveUnits(view, ids));
  if (options.ids_by_index && options.index_in_doubt) {
    return Error(Code::kUnavailable,
                 fmt::format("{}: the order of the GPUs has changed, and devices are handed out by "
                             "index: waiting for the rescan",
                             view.name()));
  }
  for (const std::string_view id : ids) {
    if (view.Unhealthy(id)) answer.unhealthy.push_back(id);
  }

  AddCdi(view, units, random, answer);
  const bool cdi_only = !options.envvar && !options.volume_mounts;
  for (const auto& [key, value] : view.prepared().envs) answer.envs.emplace_back(key, value);
  const bool mps = !options.mps_root.empty() && std::ranges::any_of(units, [&view](std::size_t i) {
    return view.units()[i].mps;
  });
  if (mps) {
    answer.envs.emplace_back("CUDA_MPS_PIPE_DIRECTORY", view.prepared().mps_pipe);
    for (const auto& mount : view.prepared().mps_mounts) answer.mounts.push_back(&mount);
  }
  if (cdi_only) return answer;

  if (options.volume_mounts) {
    answer.envs.emplace_back(kVisibleDevices, kMountedDevices);
    for (const std::size_t unit : units) answer.mounts.push_back(&view.unit(unit).list_mount);
    for (const auto& mount : view.prepared().imex_mounts) answer.mounts.push_back(&mount);
  } else {
    answer.envs.emplace_back(kVisibleDevices, JoinVisibleIds(view, units));
  }
  if (options.pass_device_specs) AddSpecs(view, units, answer);
  return answer;
}

Result<std::vector<std::string>> PreferredAllocation(const ResourceView& view,
                                                     std::span<const std::string_view> available,
                                                     std::span<const std::string_view> must_include,
                                                     int size) {
  return resource::Prefer(view.pool(), view.scores(), view.policy(),
                          {.available = available, .must_include = must_include, .size = size})
      .Context(view.name());
}

}  // namespace ndp::plugin
