// Past the exact limit: a few greedy splits, each improved by exchanging GPUs between groups until
// no exchange helps or its steps are used up. Steps are counted, never timed, so that the answer
// is the same on every machine.
#include <algorithm>
#include <cstdint>
#include <tuple>

#include "base/result.h"
#include "resource/partition.h"

namespace ndp::resource {
namespace {

// Exchanges looked at for one start: about 1 ms. 64 GPUs settle within a tenth of it as a rule.
constexpr int kStepsPerStart = 250'000;

enum class Start {
  kDensest,       // best connected seed first: finds islands
  kInOrder,       // lowest numbers first: numbers follow the board as a rule
  kLeftOverApart  // worst connected GPUs are left over, then as kDensest
};

class Split {
 public:
  Split(const PairScores& free, std::span<const int> required, int size)
      : free_(free),
        count_(free.gpus()),
        size_(size),
        groups_((count_ + size - 1) / size),
        group_of_(static_cast<std::size_t>(count_), kNone),
        pinned_(static_cast<std::size_t>(count_), false),
        pull_(static_cast<std::size_t>(count_) * static_cast<std::size_t>(groups_), 0),
        members_(static_cast<std::size_t>(groups_), 0) {
    // The required ones fill the first group and stay there.
    for (const int gpu : required) {
      Put(gpu, 0);
      pinned_[At(gpu)] = true;
    }
    any_required_ = !required.empty();
  }

  void FillFrom(Start start) {
    if (start == Start::kLeftOverApart) FillLeftOver();
    for (int group = 0; group < groups_; ++group) {
      while (members_[At(group)] < Capacity(group)) Put(Next(group, start), group);
    }
  }

  void Improve() {
    int steps = kStepsPerStart;
    bool improved = true;
    while (improved) {
      improved = false;
      for (int a = 0; a < count_; ++a) {
        for (int b = a + 1; b < count_; ++b) {
          if (--steps == 0) return;
          if (pinned_[At(a)] || pinned_[At(b)] || Gain(a, b) <= 0) continue;
          Exchange(a, b);
          improved = true;
        }
      }
    }
  }

  int Total() const {
    int twice = 0;
    for (int gpu = 0; gpu < count_; ++gpu) twice += Pull(gpu, group_of_[At(gpu)]);
    return twice / 2;
  }

  // The best full group that may be taken; of equals the one with the lowest numbers.
  std::vector<int> BestGroup() const {
    std::vector<int> best;
    int best_score = 0;
    const int choices = any_required_ ? 1 : count_ / size_;
    for (int group = 0; group < choices; ++group) {
      std::vector<int> gpus;
      for (int gpu = 0; gpu < count_; ++gpu) {
        if (group_of_[At(gpu)] == group) gpus.push_back(gpu);
      }
      const int score = free_.SetScore(gpus);
      if (best.empty() || score > best_score || (score == best_score && gpus < best)) {
        best = std::move(gpus);
        best_score = score;
      }
    }
    return best;
  }

 private:
  static constexpr int kNone = -1;

  static std::size_t At(int i) { return static_cast<std::size_t>(i); }
  // Sum of a GPU's scores with the members of a group.
  int& Pull(int gpu, int group) { return pull_[At(gpu) * At(groups_) + At(group)]; }
  int Pull(int gpu, int group) const { return pull_[At(gpu) * At(groups_) + At(group)]; }
  int Capacity(int group) const { return std::min(size_, count_ - group * size_); }

  void Put(int gpu, int group) {
    group_of_[At(gpu)] = group;
    ++members_[At(group)];
    for (int other = 0; other < count_; ++other) Pull(other, group) += free_.Score(other, gpu);
  }

  int Gain(int a, int b) const {
    const int from = group_of_[At(a)];
    const int to = group_of_[At(b)];
    if (from == to) return 0;
    return Pull(a, to) - Pull(a, from) + Pull(b, from) - Pull(b, to) - 2 * free_.Score(a, b);
  }

  void Exchange(int a, int b) {
    const int from = group_of_[At(a)];
    const int to = group_of_[At(b)];
    std::swap(group_of_[At(a)], group_of_[At(b)]);
    for (int gpu = 0; gpu < count_; ++gpu) {
      const int moved = free_.Score(gpu, b) - free_.Score(gpu, a);
      Pull(gpu, from) += moved;
      Pull(gpu, to) -= moved;
    }
  }

  // Sum of the best `size - 1` scores with GPUs that have no group yet.
  int Density(int gpu) const {
    std::vector<int> scores;
    for (int other = 0; other < count_; ++other) {
      if (other != gpu && group_of_[At(other)] == kNone) scores.push_back(free_.Score(gpu, other));
    }
    const std::size_t kept = std::min(scores.size(), At(size_ - 1));
    std::ranges::nth_element(scores, scores.begin() + static_cast<std::ptrdiff_t>(kept),
                             std::greater());
    scores.resize(kept);
    int sum = 0;
    for (const int score : scores) sum += score;
    return sum;
  }

  // The GPU to add: the one drawn most to the members; for an empty group the seed.
  int Next(int group, Start start) const {
    const bool seed = members_[At(group)] == 0;
    int best = kNone;
    int best_value = 0;
    for (int gpu = 0; gpu < count_; ++gpu) {
      if (group_of_[At(gpu)] != kNone) continue;
      if (seed && start == Start::kInOrder) return gpu;
      const int value = seed ? Density(gpu) : Pull(gpu, group);
      if (best == kNone || value > best_value) {
        best = gpu;
        best_value = value;
      }
    }
    return best;
  }

  void FillLeftOver() {
    const int group = groups_ - 1;
    if (Capacity(group) == size_) return;
    std::vector<std::pair<int, int>> by_density;
    for (int gpu = 0; gpu < count_; ++gpu) {
      if (group_of_[At(gpu)] == kNone) by_density.emplace_back(Density(gpu), gpu);
    }
    std::ranges::sort(by_density);
    for (int i = 0; i < Capacity(group); ++i) Put(by_density[At(i)].second, group);
  }

  const PairScores& free_;
  int count_;
  int size_;
  int groups_;  // the last one is the left-over group where the sizes do not divide
  std::vector<int> group_of_;
  std::vector<bool> pinned_;
  std::vector<int> pull_;
  std::vector<int> members_;
  bool any_required_ = false;
};

}  // namespace

std::vector<int> BestGroupBySearch(const PairScores& free, std::span<const int> required,
                                   int size) {
  NDP_CHECK(size > 1 && size < free.gpus());
  std::vector<int> best;
  int best_total = 0;
  for (const Start start : {Start::kDensest, Start::kInOrder, Start::kLeftOverApart}) {
    Split split(free, required, size);
    split.FillFrom(start);
    split.Improve();
    std::vector<int> group = split.BestGroup();
    const int total = split.Total();
    const auto rank = [&](int sum, const std::vector<int>& gpus) {
      return std::tuple(sum, free.SetScore(gpus));
    };
    if (best.empty() || rank(total, group) > rank(best_total, best) ||
        (rank(total, group) == rank(best_total, best) && group < best)) {
      best = std::move(group);
      best_total = total;
    }
  }
  return best;
}

}  // namespace ndp::resource
