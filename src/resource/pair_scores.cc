#include "resource/pair_scores.h"

#include "base/result.h"

namespace ndp::resource {
namespace {

int PcieScore(int ancestor) {
  switch (ancestor) {
    case 0:
      return kScoreSameBoard;
    case 10:
      return kScoreOneSwitch;
    case 20:
      return kScoreSeveralSwitches;
    case 30:
      return kScoreHostBridge;
    case 40:
      return kScoreSameNode;
    default:
      return kScoreAcross;
  }
}

}  // namespace

int PairScore(int ancestor, unsigned nvlinks) {
  return PcieScore(ancestor) + kScorePerNvLink * static_cast<int>(nvlinks);
}

PairScores::PairScores(int gpus)
    : gpus_(gpus),
      scores_(static_cast<std::size_t>(gpus) * static_cast<std::size_t>(gpus), kScoreAcross),
      numa_(static_cast<std::size_t>(gpus)) {}

void PairScores::Set(int a, int b, int score) {
  NDP_CHECK(a >= 0 && b >= 0 && a < gpus_ && b < gpus_ && a != b);
  scores_[Cell(a, b)] = score;
  scores_[Cell(b, a)] = score;
}

void PairScores::SetNumaNode(int gpu, std::optional<int> node) {
  NDP_CHECK(gpu >= 0 && gpu < gpus_);
  numa_[static_cast<std::size_t>(gpu)] = node;
}

bool PairScores::SameNumaNode(int a, int b) const {
  if (a >= gpus_ || b >= gpus_) return false;
  const auto& node = numa_[static_cast<std::size_t>(a)];
  return node && node == numa_[static_cast<std::size_t>(b)];
}

PairScores PairScores::Of(std::span<const int> gpus) const {
  PairScores part(static_cast<int>(gpus.size()));
  for (int i = 0; i < part.gpus_; ++i) {
    const int gpu = gpus[static_cast<std::size_t>(i)];
    if (gpu < gpus_) part.SetNumaNode(i, numa_[static_cast<std::size_t>(gpu)]);
    for (int j = 0; j < i; ++j) part.Set(i, j, Score(gpu, gpus[static_cast<std::size_t>(j)]));
  }
  return part;
}

bool PairScores::Uniform() const {
  for (int a = 0; a < gpus_; ++a) {
    for (int b = 0; b < a; ++b) {
      if (Score(a, b) != Score(0, 1)) return false;
    }
  }
  return true;
}

int PairScores::SetScore(std::span<const int> gpus) const {
  int sum = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) sum += Score(gpus[i], gpus[j]);
  }
  return sum;
}

}  // namespace ndp::resource
