#include "resource/tied_gpus.h"

#include <algorithm>
#include <compare>
#include <vector>

#include "base/result.h"

namespace ndp::resource {
namespace {

// All sets of 8 out of 16 are 12,870; more are not tried.
constexpr std::size_t kTryAllLimit = 16;

struct Quality {
  int score = 0;
  int same_node = 0;

  Quality& operator+=(const Quality& other) {
    score += other.score;
    same_node += other.same_node;
    return *this;
  }
  auto operator<=>(const Quality&) const = default;
};

class Chooser {
 public:
  Chooser(const PairScores& scores, std::span<const int> chosen, std::vector<int> tied, int size)
      : scores_(scores), tied_(std::move(tied)), size_(static_cast<std::size_t>(size)) {
    for (const int gpu : tied_) {
      Quality with_chosen;
      for (const int other : chosen) with_chosen += Pair(gpu, other);
      alone_.push_back(with_chosen);
    }
  }

  std::vector<int> Choose() {
    if (tied_.size() <= kTryAllLimit) {
      TryAll(0, {});
    } else {
      for (std::size_t seed = 0; seed < tied_.size(); ++seed) GrowFrom(seed);
    }
    std::vector<int> gpus;
    for (const std::size_t i : best_) gpus.push_back(tied_[i]);
    return gpus;
  }

 private:
  Quality Pair(int a, int b) const { return {scores_.Score(a, b), scores_.SameNumaNode(a, b)}; }

  Quality Added(std::size_t candidate) const {
    Quality added = alone_[candidate];
    for (const std::size_t i : current_) added += Pair(tied_[candidate], tied_[i]);
    return added;
  }

  void Consider(const Quality& quality, const std::vector<std::size_t>& set) {
    const bool better =
        best_.empty() || quality > best_quality_ || (quality == best_quality_ && set < best_);
    if (!better) return;
    best_ = set;
    best_quality_ = quality;
  }

  // Depth first in ascending order.
  void TryAll(std::size_t from, Quality quality) {
    if (current_.size() == size_) return Consider(quality, current_);
    const std::size_t missing = size_ - current_.size();
    for (std::size_t i = from; i + missing <= tied_.size(); ++i) {
      Quality with = quality;
      with += Added(i);
      current_.push_back(i);
      TryAll(i + 1, with);
      current_.pop_back();
    }
  }

  void GrowFrom(std::size_t seed) {
    std::vector<Quality> gain = alone_;
    std::vector<std::size_t> set;
    Quality quality;
    std::size_t next = seed;
    while (true) {
      quality += gain[next];
      set.push_back(next);
      if (set.size() == size_) break;
      for (std::size_t i = 0; i < tied_.size(); ++i) gain[i] += Pair(tied_[i], tied_[next]);
      std::size_t best = tied_.size();
      for (std::size_t i = 0; i < tied_.size(); ++i) {
        if (std::ranges::find(set, i) != set.end()) continue;
        if (best == tied_.size() || gain[i] > gain[best]) best = i;
      }
      next = best;
    }
    std::ranges::sort(set);
    Consider(quality, set);
  }

  const PairScores& scores_;
  std::vector<int> tied_;
  std::size_t size_;
  std::vector<Quality> alone_;
  std::vector<std::size_t> current_;
  std::vector<std::size_t> best_;
  Quality best_quality_;
};

}  // namespace

std::vector<int> ChooseTied(const PairScores& scores, std::span<const int> chosen,
                            std::span<const int> tied, int size) {
  NDP_CHECK(size >= 0 && static_cast<std::size_t>(size) <= tied.size());
  std::vector<int> ascending(tied.begin(), tied.end());
  std::ranges::sort(ascending);
  if (size == 0) return {};
  if (static_cast<std::size_t>(size) == ascending.size()) return ascending;
  return Chooser(scores, chosen, std::move(ascending), size).Choose();
}

}  // namespace ndp::resource
