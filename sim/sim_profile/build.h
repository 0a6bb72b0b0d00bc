// From a profile to a machine's first state. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sim_profile/profile.h"
#include "sim_state/layout.h"

namespace ndp::sim_profile {

struct BuildOptions {
  // Only the first so many GPUs; 0 = all.
  std::uint32_t gpus = 0;
  // Part of every UUID, so that two simulated nodes differ. The same seed gives the same machine.
  std::string seed;
  // Wall time at which the energy counters start.
  std::int64_t now_ns = 0;
};

// Fills a Control that is as new.
Status BuildMachine(const Profile& profile, const BuildOptions& options,
                    sim_state::Control& control);

}  // namespace ndp::sim_profile
