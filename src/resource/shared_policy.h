// How many replicas or MIG devices a request takes from each device of a resource that is shared or
// made of MIG devices. Pure, any thread.
#pragma once

#include <span>
#include <vector>

#include "config/settings.h"
#include "resource/pair_scores.h"

namespace ndp::resource {

// kDistributed: from the least allocated GPU, for few neighbours. kPacked: from the most allocated
// one, so that whole GPUs stay free.
using SharedPolicy = config::AllocationPolicy;

// One device as a request finds it.
struct SharedDevice {
  int gpu = 0;        // (parent) GPU, its position in the pair scores
  int total = 1;      // replicas it has
  int available = 0;  // of these, free
  int required = 0;   // of these, must be in the answer
};

// What each device gives, `required` included; the sum is `size`. Both rules work on GPUs first,
// then on the devices of a GPU. GPUs alike in load are decided by how often this request took from
// them, then by ChooseTied; devices alike by their order.
// Needs sum of required ≤ size ≤ sum of available, and required ≤ available ≤ total for each.
std::vector<int> Share(std::span<const SharedDevice> devices, const PairScores& scores,
                       SharedPolicy policy, int size);

}  // namespace ndp::resource
