// How well every two GPUs of a node are connected, as one number per pair: what the allocation
// policies maximise. Filled once per inventory snapshot; then read by any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace ndp::resource {

// PCIe part of a pair's score, by NVML's topology level.
inline constexpr int kScoreSameBoard = 60;
inline constexpr int kScoreOneSwitch = 50;
inline constexpr int kScoreSeveralSwitches = 40;
inline constexpr int kScoreHostBridge = 30;
inline constexpr int kScoreSameNode = 20;
inline constexpr int kScoreAcross = 10;
inline constexpr int kScorePerNvLink = 100;

// From NVML's numbers: `ancestor` 0 (same board) … 50 (across sockets). An unknown level counts as
// across.
int PairScore(int ancestor, unsigned nvlinks);

class PairScores {
 public:
  // No GPU at all: every pair asked for counts as "across".
  PairScores() = default;
  // `gpus` GPUs, numbered from 0, every pair "across", NUMA nodes unknown.
  explicit PairScores(int gpus);

  int gpus() const { return gpus_; }

  void Set(int a, int b, int score);
  void SetNumaNode(int gpu, std::optional<int> node);

  // 0 for a GPU and itself. A GPU past gpus() is across from all others: the links of a GPU that
  // has just appeared are not read yet.
  int Score(int a, int b) const {
    if (a == b) return 0;
    if (a >= gpus_ || b >= gpus_) return kScoreAcross;
    return scores_[Cell(a, b)];
  }
  // Both known and equal.
  bool SameNumaNode(int a, int b) const;

  // The same for the GPUs named, renumbered in that order.
  PairScores Of(std::span<const int> gpus) const;
  // All pairs are alike, as on an NVSwitch machine: any set is as good as any other.
  bool Uniform() const;
  // Sum over the pairs of `gpus`.
  int SetScore(std::span<const int> gpus) const;

  bool operator==(const PairScores&) const = default;

 private:
  std::size_t Cell(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(gpus_) +
           static_cast<std::size_t>(b);
  }

  int gpus_ = 0;
  std::vector<int> scores_;  // gpus_ × gpus_, symmetric
  std::vector<std::optional<int>> numa_;
};

}  // namespace ndp::resource
