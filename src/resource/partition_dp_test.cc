#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "resource/partition.h"

namespace ndp::resource {
namespace {

using ::testing::ElementsAre;

PairScores RandomScores(int gpus, int most, std::mt19937& random) {
  PairScores scores(gpus);
  std::uniform_int_distribution<int> score(0, most);
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < a; ++b) scores.Set(a, b, 10 * score(random));
  }
  return scores;
}

std::vector<int> Members(unsigned mask) {
  std::vector<int> gpus;
  for (int gpu = 0; mask >> gpu != 0; ++gpu) {
    if ((mask >> gpu & 1) != 0) gpus.push_back(gpu);
  }
  return gpus;
}

// The rule by its wording: looks at every split of the GPUs into full groups and at most one
// smaller one, and keeps for every must-include set the best group that contains it.
class Oracle {
 public:
  Oracle(const PairScores& scores, int size)
      : scores_(scores), size_(size), best_(1U << scores.gpus()) {
    Deal(0);
  }

  std::vector<int> Answer(unsigned required) const { return best_[required].group; }

 private:
  struct Best {
    std::tuple<int, int> rank;  // total of the split, score of the group
    std::vector<int> group;
  };

  // Puts GPU `gpu` into each group there is, or opens one.
  void Deal(int gpu) {
    if (gpu == scores_.gpus()) return Judge();
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (static_cast<int>(groups_[i].size()) == size_) continue;
      groups_[i].push_back(gpu);
      Deal(gpu + 1);
      groups_[i].pop_back();
    }
    if (static_cast<int>(groups_.size()) == (scores_.gpus() + size_ - 1) / size_) return;
    groups_.push_back({gpu});
    Deal(gpu + 1);
    groups_.pop_back();
  }

  void Judge() {
    int total = 0;
    int small = 0;
    for (const auto& group : groups_) {
      total += scores_.SetScore(group);
      small += static_cast<int>(group.size()) < size_ ? 1 : 0;
    }
    if (small > 1) return;
    for (const auto& group : groups_) {
      if (static_cast<int>(group.size()) < size_) continue;
      unsigned mask = 0;
      for (const int gpu : group) mask |= 1U << gpu;
      const std::tuple rank(total, scores_.SetScore(group));
      for (unsigned required = mask;; required = (required - 1) & mask) {
        Best& best = best_[required];
        if (best.group.empty() || rank > best.rank || (rank == best.rank && group < best.group)) {
          best = {rank, group};
        }
        if (required == 0) break;
      }
    }
  }

  const PairScores& scores_;
  int size_;
  std::vector<std::vector<int>> groups_;
  std::vector<Best> best_;  // by must-include set
};

TEST(PartitionDpTest, EqualsTheBestOfAllSplitsForEverySizeAndMustInclude) {
  std::mt19937 random(20240);
  for (int gpus = 3; gpus <= 8; ++gpus) {
    // Few different scores make ties, many make none.
    for (const int most : {1, 2, 6, 1000}) {
      const PairScores scores = RandomScores(gpus, most, random);
      for (int size = 2; size < gpus; ++size) {
        const Oracle oracle(scores, size);
        for (unsigned mask = 0; mask < (1U << gpus); ++mask) {
          const std::vector<int> required = Members(mask);
          if (static_cast<int>(required.size()) > size) continue;
          ASSERT_EQ(BestGroupExact(scores, required, size), oracle.Answer(mask))
              << gpus << " GPUs, size " << size << ", must include mask " << mask
              << ", scores up to " << most;
        }
      }
    }
  }
}

// The two sizes that need no search: one GPU, of those allowed the one that is linked to the others
// the least; and all of them.
TEST(PartitionDpTest, EqualsTheRuleForSizeOneAndForAll) {
  std::mt19937 random(77);
  for (int gpus = 1; gpus <= 8; ++gpus) {
    for (const int most : {1, 2, 6, 1000}) {
      const PairScores scores = RandomScores(gpus, most, random);
      const std::vector<int> all = Members((1U << gpus) - 1);
      for (unsigned mask = 0; mask < (1U << gpus); ++mask) {
        const std::vector<int> required = Members(mask);
        EXPECT_EQ(BestGroup(scores, required, gpus), all);
        if (required.size() > 1) continue;
        int best = -1;
        int best_cost = 0;
        for (const int gpu : required.empty() ? all : required) {
          int cost = 0;
          for (const int other : all) cost += other == gpu ? 0 : scores.Score(gpu, other);
          if (best < 0 || cost < best_cost) {
            best = gpu;
            best_cost = cost;
          }
        }
        EXPECT_THAT(BestGroup(scores, required, 1), ElementsAre(best)) << mask;
      }
    }
  }
}

TEST(PartitionDpTest, BestTotalWinsOverBestSet) {
  // 0-1 is the best pair, but taking it leaves the weak 2-3.
  PairScores scores(4);
  scores.Set(0, 1, 300);
  scores.Set(0, 2, 200);
  scores.Set(1, 3, 250);
  EXPECT_THAT(BestGroup(scores, {}, 2), ElementsAre(1, 3));
}

TEST(PartitionDpTest, LeftOverGroupCountsButIsNeverTheAnswer) {
  // The triple 0,1,2 is strong; of five GPUs groups of three leave two over.
  PairScores scores(5);
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
    scores.Set(a, b, 100);
  }
  EXPECT_THAT(BestGroup(scores, {}, 3), ElementsAre(0, 1, 2));
  const std::vector<int> required = {3, 4};
  EXPECT_THAT(BestGroup(scores, required, 3), ElementsAre(0, 3, 4));
}

TEST(PartitionDpTest, SizeOneLeavesGoodPairsWhole) {
  PairScores scores(5);
  scores.Set(0, 1, 210);
  scores.Set(3, 4, 210);
  EXPECT_THAT(BestGroup(scores, {}, 1), ElementsAre(2));
  const std::vector<int> required = {3};
  EXPECT_THAT(BestGroup(scores, required, 1), ElementsAre(3));
}

TEST(PartitionDpTest, UniformFabricTakesTheLowestNumbers) {
  const PairScores scores(16);
  EXPECT_THAT(BestGroup(scores, {}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(BestGroupExact(scores, {}, 3), ElementsAre(0, 1, 2));
  const std::vector<int> required = {9, 4};
  EXPECT_THAT(BestGroup(scores, required, 3), ElementsAre(0, 4, 9));
  EXPECT_THAT(BestGroupExact(scores, required, 3), ElementsAre(0, 4, 9));
}

TEST(PartitionDpTest, SixteenGpusInIslandsGiveWholeIslands) {
  // Islands of four by number modulo four, so that low numbers alone would be wrong.
  PairScores scores(16);
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < a; ++b) scores.Set(a, b, a % 4 == b % 4 ? 410 : 10);
  }
  EXPECT_THAT(BestGroup(scores, {}, 4), ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(BestGroup(scores, {}, 8), ElementsAre(0, 1, 4, 5, 8, 9, 12, 13));
  const std::vector<int> required = {6};
  EXPECT_THAT(BestGroup(scores, required, 2), ElementsAre(2, 6));
}

}  // namespace
}  // namespace ndp::resource
