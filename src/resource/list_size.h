// How many bytes a resource's ListAndWatchResponse takes on the wire. The kubelet ends the stream
// at a message over 4 MiB. Counted, not serialised: this room knows no protobuf. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "resource/resource_set.h"

namespace ndp::resource {

inline constexpr std::uint64_t kMaxListBytes = 4ULL * 1024 * 1024;

// One Device of the response, its tag and length included.
std::uint64_t ListEntryBytes(std::size_t id_length, bool healthy, std::optional<int> numa_node);

// The longest the list can become: all Unhealthy.
std::uint64_t ListBytes(const Resource& resource);

// The most replicas with which the list fits, all shared devices of the resource having as many;
// 0 where not even one does.
int MostReplicas(const Resource& resource);

}  // namespace ndp::resource
