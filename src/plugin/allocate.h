// What a container is given: the answers to Allocate and GetPreferredAllocation. Pure functions of
// the resource's snapshot and the request; any thread.
#pragma once

#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "plugin/resource_view.h"

namespace ndp::plugin {

// One container's answer. Views and pointers are into the snapshot it was made from, or into the
// request.
struct ContainerAnswer {
  std::vector<std::pair<std::string_view, std::string>> envs;
  std::vector<const ResourceView::Mount*> mounts;
  std::vector<const ResourceView::DeviceSpec*> device_specs;  // all "rw"
  std::optional<std::pair<std::string, std::string>> annotation;
  std::vector<std::string_view> cdi_names;
  // Asked for although they are listed Unhealthy. The kubelet picks healthy ones, so these have
  // just failed. They are handed out all the same: a refusal would reject the pod for good.
  std::vector<std::string_view> unhealthy;
};

// Devices come by index and once each, whatever the order of the ids and however often each is
// named: the kubelet's order is random. No ids: an empty answer.
// kNotFound for an id that the resource does not have; kInvalidArgument where more replicas are
// asked for than the settings allow; kUnavailable while indices are in doubt.
// `random` is for the name of the CDI annotation.
Result<ContainerAnswer> Allocate(const ResourceView& view, std::span<const std::string_view> ids,
                                 std::mt19937_64& random);

// kInvalidArgument with the numbers or ids where the request cannot be met.
Result<std::vector<std::string>> PreferredAllocation(const ResourceView& view,
                                                     std::span<const std::string_view> available,
                                                     std::span<const std::string_view> must_include,
                                                     int size);

}  // namespace ndp::plugin
