// Which of several equally loaded GPUs to share: those that are best connected among themselves
// and to the GPUs that the request has already. Pure, any thread.
#pragma once

#include <span>
#include <vector>

#include "resource/pair_scores.h"

namespace ndp::resource {

// `size` of `tied`, ascending: the largest sum of pair scores within them and with `chosen`, then
// the most pairs on one NUMA node, then the lowest numbers. The best there is for up to 16 tied
// GPUs, else one added at a time from every seed. Needs size ≤ tied.size(); none of `tied` may be
// in `chosen`.
std::vector<int> ChooseTied(const PairScores& scores, std::span<const int> chosen,
                            std::span<const int> tied, int size);

}  // namespace ndp::resource
