// Which whole GPUs to hand out: split all free GPUs into groups of the asked size (what is left
// over is a smaller group) so that the sum of the groups' scores is the largest, and take the best
// of the full groups. Taking the best set alone would break pairs that the next pod needs.
//
// GPUs are the numbers 0 … free.gpus()-1; lower numbers win ties. Pure, any thread.
#pragma once

#include <span>
#include <vector>

#include "resource/pair_scores.h"

namespace ndp::resource {

// Up to here the answer is the optimum; beyond, a search with a fixed number of steps.
inline constexpr int kExactLimit = 16;

// `size` GPUs, ascending, `required` among them.
// Needs 0 < size ≤ free.gpus(), and distinct `required`, at most `size` of them.
std::vector<int> BestGroup(const PairScores& free, std::span<const int> required, int size);

// What BestGroup chooses from, for tests and benchmarks.
// At most kExactLimit GPUs, 1 < size < free.gpus().
std::vector<int> BestGroupExact(const PairScores& free, std::span<const int> required, int size);
// Any number of GPUs, 1 < size < free.gpus().
std::vector<int> BestGroupBySearch(const PairScores& free, std::span<const int> required, int size);

}  // namespace ndp::resource
