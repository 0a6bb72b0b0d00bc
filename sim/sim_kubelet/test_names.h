// What this room's tests all speak of.
#pragma once

#include "base/clock.h"

namespace ndp::sim_kubelet {

inline constexpr const char* kGpu = "nvidia.com/gpu";
inline constexpr MonoTime kNow{std::chrono::hours(1)};

}  // namespace ndp::sim_kubelet
