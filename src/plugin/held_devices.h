// Which device ids pods hold, and which of a resource's ids must therefore stay on its list.
//
// A kubelet crashes when an id that a pod holds, or is just being given, is no longer listed. So an
// id that the kubelet has seen may go only when no pod holds it and the kubelet has had it as
// Unhealthy for a while. Pure; loop thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "plugin/resource_view.h"

namespace ndp::plugin {

// What pods hold, whoever serves it.
class HeldDevices {
 public:
  void Add(std::string_view resource, std::string_view id);

  bool Holds(std::string_view resource, std::string_view id) const;
  bool HoldsAny(std::string_view resource) const;
  // Ascending; empty where there are none.
  const std::set<std::string, std::less<>>& Ids(std::string_view resource) const;
  // Full names, ascending.
  std::vector<std::string> Resources() const;
  // The resources under which the device or a replica of it is held, ascending: what a pod holds
  // under one is not to be handed out under another.
  std::vector<std::string> ResourcesHolding(std::string_view uuid) const;

  // What is held here and in one of the two.
  HeldDevices HeldInAny(const HeldDevices& one, const HeldDevices& other) const;

  bool operator==(const HeldDevices&) const = default;

 private:
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> by_resource_;
};

// The file kubelet_internal_checkpoint of the kubelet's plugin folder. Only its pod entries are
// read; the checksum is left to the kubelet, whose hash of Go values nobody else can compute.
// kInvalidArgument where the text is no such file.
Result<HeldDevices> ParseCheckpoint(std::string_view json);

// Since when the kubelet has had ids of one resource as Unhealthy.
class UnhealthyAtKubelet {
 public:
  // The list is on the wire to the kubelet.
  void OnSent(const ResourceView& view, MonoTime now);
  // The kubelet has begun anew and knows none of the lists.
  void Forget() { since_.clear(); }
  std::optional<MonoTime> Since(std::string_view id) const;

 private:
  std::map<std::string, MonoTime, std::less<>> since_;
};

// How long the kubelet must have had an id as Unhealthy: an Allocate for it may be under way.
inline constexpr Duration kUnhealthyBeforeLeaving = std::chrono::seconds(10);

struct Leaving {
  // To be listed, Unhealthy: they may not go yet.
  std::vector<ListedDevice> stay;
  // When the first of those that no pod holds may go; nothing if there are none that wait for time
  // alone. Those that wait for a first list or for their pods have no time.
  std::optional<MonoTime> look_again;
};

// The ids that must be listed beside those `offered`: of the ids that the kubelet has been shown
// (`shown`; null: none) those that may not go yet, and what pods hold of our own forms of ids.
Leaving StayingIds(const ResourceView* shown, const std::set<std::string_view>& offered,
                   const HeldDevices& held, std::string_view resource,
                   const UnhealthyAtKubelet& unhealthy, MonoTime now);

}  // namespace ndp::plugin
