#include "resource/partition.h"

#include <algorithm>
#include <numeric>

#include "base/result.h"

namespace ndp::resource {
namespace {

// Groups of one all score 0, so the rule above cannot choose; take the GPU whose loss costs the
// others the least, and single-GPU pods leave good pairs whole.
int LeastMissed(const PairScores& free) {
  int best = 0;
  int best_loss = 0;
  for (int gpu = 0; gpu < free.gpus(); ++gpu) {
    int loss = 0;
    for (int other = 0; other < free.gpus(); ++other) loss += free.Score(gpu, other);
    if (gpu == 0 || loss < best_loss) {
      best = gpu;
      best_loss = loss;
    }
  }
  return best;
}

std::vector<int> LowestNumbers(std::span<const int> required, int size) {
  std::vector<int> group(required.begin(), required.end());
  for (int gpu = 0; static_cast<int>(group.size()) < size; ++gpu) {
    if (std::ranges::find(required, gpu) == required.end()) group.push_back(gpu);
  }
  std::ranges::sort(group);
  return group;
}

}  // namespace

std::vector<int> BestGroup(const PairScores& free, std::span<const int> required, int size) {
  const int count = free.gpus();
  NDP_CHECK(size > 0 && size <= count && static_cast<int>(required.size()) <= size);
  if (static_cast<int>(required.size()) == size || size == count) {
    return LowestNumbers(required, size);
  }
  if (size == 1) return {LeastMissed(free)};
  if (free.Uniform()) return LowestNumbers(required, size);
  return count <= kExactLimit ? BestGroupExact(free, required, size)
                              : BestGroupBySearch(free, required, size);
}

}  // namespace ndp::resource
