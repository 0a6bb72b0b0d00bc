// What GetPreferredAllocation answers. Pure, any thread; microseconds to a few milliseconds, and
// nothing but the arguments is looked at.
//
// Resources of whole, unshared GPUs: partition.h. All others: shared_policy.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "resource/device_pool.h"
#include "resource/pair_scores.h"
#include "resource/shared_policy.h"

namespace ndp::resource {

// One container's part of the kubelet's request. In any order; an id named twice counts once.
struct PreferredRequest {
  std::span<const std::string_view> available{};
  std::span<const std::string_view> must_include{};
  int size = 0;
};

// The chosen ids, by device and replica. Fails with kInvalidArgument where the request cannot be
// met; it never answers fewer ids than asked, since the kubelet would then choose by itself.
Result<std::vector<std::string>> Prefer(const DevicePool& pool, const PairScores& scores,
                                        SharedPolicy policy, const PreferredRequest& request);

}  // namespace ndp::resource
