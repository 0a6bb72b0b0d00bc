#include "plugin/held_devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ids.h"
#include "doc/json.h"

namespace ndp::plugin {
namespace {

// DeviceIDs is {"<NUMA node, -1: none>": [id, …]}; kubelets before 1.20 wrote a plain list.
void AddIds(const doc::Value& ids, const std::string& resource, HeldDevices& held) {
  for (const doc::Value& id : ids.items()) held.Add(resource, id.Text());
  for (const auto& node : ids.entries()) {
    for (const doc::Value& id : node.value.items()) held.Add(resource, id.Text());
  }
}

}  // namespace

void HeldDevices::Add(std::string_view resource, std::string_view id) {
  if (resource.empty() || id.empty()) return;
  auto at = by_resource_.find(resource);
  if (at == by_resource_.end()) at = by_resource_.try_emplace(std::string(resource)).first;
  at->second.emplace(id);
}

bool HeldDevices::Holds(std::string_view resource, std::string_view id) const {
  return Ids(resource).contains(id);
}

bool HeldDevices::HoldsAny(std::string_view resource) const { return !Ids(resource).empty(); }

const std::set<std::string, std::less<>>& HeldDevices::Ids(std::string_view resource) const {
  static const std::set<std::string, std::less<>> none;
  const auto at = by_resource_.find(resource);
  return at == by_resource_.end() ? none : at->second;
}

std::vector<std::string> HeldDevices::Resources() const {
  std::vector<std::string> names;
  for (const auto& [name, ids] : by_resource_) names.push_back(name);
  return names;
}

std::vector<std::string> HeldDevices::ResourcesHolding(std::string_view uuid) const {
  std::vector<std::string> names;
  for (const auto& [name, ids] : by_resource_) {
    const bool holds = std::ranges::any_of(
        ids, [uuid](const std::string& id) { return StripReplica(id) == uuid; });
    if (holds) names.push_back(name);
  }
  return names;
}

HeldDevices HeldDevices::HeldInAny(const HeldDevices& one, const HeldDevices& other) const {
  HeldDevices both;
  for (const auto& [name, ids] : by_resource_) {
    for (const std::string& id : ids) {
      if (one.Holds(name, id) || other.Holds(name, id)) both.Add(name, id);
    }
  }
  return both;
}

Result<HeldDevices> ParseCheckpoint(std::string_view json) {
  NDP_TRY(const doc::Value document, doc::ParseJson(json));
  const doc::Value* data = document.Find("Data");
  if (data == nullptr || !data->is_map()) {
    return Error(Code::kInvalidArgument, "no map 'Data': not a device manager's checkpoint");
  }
  HeldDevices held;
  const doc::Value* entries = data->Find("PodDeviceEntries");
  if (entries == nullptr || entries->is_null()) return held;  // no pod holds anything
  if (!entries->is_list()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("line {}: Data.PodDeviceEntries is {}, should be a list",
                             entries->line(), doc::KindName(entries->kind())));
  }
  for (const doc::Value& entry : entries->items()) {
    const doc::Value* resource = entry.Find("ResourceName");
    const doc::Value* ids = entry.Find("DeviceIDs");
    if (resource == nullptr || ids == nullptr) {
      return Error(Code::kInvalidArgument,
                   fmt::format("line {}: an entry of Data.PodDeviceEntries lacks ResourceName or "
                               "DeviceIDs",
                               entry.line()));
    }
    AddIds(*ids, resource->Text(), held);
  }
  return held;
}

void UnhealthyAtKubelet::OnSent(const ResourceView& view, MonoTime now) {
  std::map<std::string, MonoTime, std::less<>> next;
  for (const ListedDevice& device : view.devices()) {
    if (!device.healthy) next.emplace(device.id, Since(device.id).value_or(now));
  }
  since_ = std::move(next);
}

std::optional<MonoTime> UnhealthyAtKubelet::Since(std::string_view id) const {
  const auto at = since_.find(id);
  if (at == since_.end()) return std::nullopt;
  return at->second;
}

Leaving StayingIds(const ResourceView* shown, const std::set<std::string_view>& offered,
                   const HeldDevices& held, std::string_view resource,
                   const UnhealthyAtKubelet& unhealthy, MonoTime now) {
  Leaving result;
  std::set<std::string_view> seen;
  const std::span<const ListedDevice> listed =
      shown == nullptr ? std::span<const ListedDevice>() : shown->devices();
  for (const ListedDevice& device : listed) {
    seen.insert(device.id);
    if (offered.contains(device.id)) continue;
    const bool is_held = held.Holds(resource, device.id);
    const auto since = unhealthy.Since(device.id);
    const bool long_enough = since && now - *since >= kUnhealthyBeforeLeaving;
    if (!is_held && long_enough) continue;
    result.stay.push_back({.id = device.id,
                           .healthy = false,
                           .reason = is_held ? "no longer offered; a pod holds it"
                                             : "no longer offered; leaves the list shortly",
                           .numa_node = device.numa_node});
    if (is_held || !since) continue;
    const MonoTime may_go = *since + kUnhealthyBeforeLeaving;
    if (!result.look_again || may_go < *result.look_again) result.look_again = may_go;
  }
  // Shown by an earlier process. Others may serve the same resource name: only our forms of ids.
  for (const std::string& id : held.Ids(resource)) {
    if (offered.contains(id) || seen.contains(id) || !IsOwnIdForm(id)) continue;
    result.stay.push_back(
        {.id = id, .healthy = false, .reason = "not found on this node; a pod holds it"});
  }
  return result;
}

}  // namespace ndp::plugin
