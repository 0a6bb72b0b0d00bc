#include "cdi/canonical.h"

#include <algorithm>
#include <array>

namespace ndp::cdi {
namespace {

// In order of release.
constexpr std::array<std::string_view, 10> kVersions = {
    "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};

std::size_t VersionRank(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  return static_cast<std::size_t>(std::ranges::find(kVersions, version) - kVersions.begin());
}

template <typename T>
bool Contains(const std::vector<T>& in, const T& value) {
  return std::ranges::find(in, value) != in.end();
}

// Keeps the first of equal entries, in order.
template <typename T>
void DropRepeats(std::vector<T>& entries) {
  std::vector<T> kept;
  kept.reserve(entries.size());
  for (T& entry : entries) {
    if (!Contains(kept, entry)) kept.push_back(std::move(entry));
  }
  entries = std::move(kept);
}

void DropRepeats(Edits& edits) {
  DropRepeats(edits.env);
  DropRepeats(edits.device_nodes);
  DropRepeats(edits.hooks);
  DropRepeats(edits.mounts);
  DropRepeats(edits.additional_gids);
}

template <typename T>
std::vector<T> Without(const std::vector<T>& entries, const std::vector<T>& common) {
  std::vector<T> kept;
  std::ranges::copy_if(entries, std::back_inserter(kept),
                       [&](const T& entry) { return !Contains(common, entry); });
  return kept;
}

void DropCommon(Edits& edits, const Edits& common) {
  Edits kept = edits;
  kept.env = Without(edits.env, common.env);
  kept.device_nodes = Without(edits.device_nodes, common.device_nodes);
  kept.hooks = Without(edits.hooks, common.hooks);
  kept.mounts = Without(edits.mounts, common.mounts);
  // A device without edits of its own is refused by runtimes.
  bool nothing_left =
      kept.env.empty() && kept.device_nodes.empty() && kept.hooks.empty() && kept.mounts.empty();
  if (!nothing_left) edits = std::move(kept);
}

// Parents before what lies below them, so that mounts do not hide each other.
bool PathLess(const std::string& a, const std::string& b) {
  auto slashes_a = std::ranges::count(a, '/');
  auto slashes_b = std::ranges::count(b, '/');
  return slashes_a != slashes_b ? slashes_a < slashes_b : a < b;
}

void Sort(Edits& edits) {
  std::ranges::sort(edits.additional_gids);
  std::ranges::stable_sort(edits.device_nodes, PathLess, &DeviceNode::path);
  std::ranges::stable_sort(edits.mounts, PathLess, &Mount::container_path);
}

std::size_t EditsRank(const Edits& edits) {
  std::size_t rank = VersionRank("0.3.0");
  auto need = [&](bool used, std::string_view version) {
    if (used) rank = std::max(rank, VersionRank(version));
  };
  need(std::ranges::any_of(edits.mounts, [](const Mount& m) { return !m.type.empty(); }), "0.4.0");
  need(std::ranges::any_of(edits.device_nodes,
                           [](const DeviceNode& n) { return !n.host_path.empty(); }),
       "0.5.0");
  need(!edits.additional_gids.empty() || edits.intel_rdt.has_value(), "0.7.0");
  need(!edits.net_devices.empty(), "1.1.0");
  need(
      edits.intel_rdt && (!edits.intel_rdt->schemata.empty() || edits.intel_rdt->enable_monitoring),
      "1.1.0");
  return rank;
}

}  // namespace

void Simplify(Spec& spec) {
  DropRepeats(spec.edits);
  for (Device& device : spec.devices) {
    DropRepeats(device.edits);
    DropCommon(device.edits, spec.edits);
    Sort(device.edits);
  }
  Sort(spec.edits);
  std::ranges::stable_sort(spec.devices, {}, &Device::name);
}

std::string MinimumVersion(const Spec& spec) {
  std::size_t rank = EditsRank(spec.edits);
  auto need = [&](bool used, std::string_view version) {
    if (used) rank = std::max(rank, VersionRank(version));
  };
  for (const Device& device : spec.devices) {
    rank = std::max(rank, EditsRank(device.edits));
    need(!device.name.empty() && device.name[0] >= '0' && device.name[0] <= '9', "0.5.0");
    need(!device.annotations.empty(), "0.6.0");
  }
  need(!spec.annotations.empty(), "0.6.0");
  std::size_t slash = spec.kind.find('/');
  need(slash != std::string::npos && spec.kind.find('.', slash) != std::string::npos, "0.6.0");
  return std::string(kVersions[rank]);
}

bool IsKnownVersion(std::string_view version) { return VersionRank(version) < kVersions.size(); }

bool VersionLess(std::string_view a, std::string_view b) { return VersionRank(a) < VersionRank(b); }

}  // namespace ndp::cdi
