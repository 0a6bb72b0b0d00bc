#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "resource/partition.h"

namespace ndp::resource {
namespace {

using ::testing::ElementsAre;

PairScores RandomScores(int gpus, std::mt19937& random) {
  PairScores scores(gpus);
  std::uniform_int_distribution<int> links(0, 4);
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < a; ++b) scores.Set(a, b, 10 + 100 * links(random));
  }
  return scores;
}

// `islands` of `width` GPUs each; members of one island are `islands` apart.
PairScores Islands(int islands, int width) {
  PairScores scores(islands * width);
  for (int a = 0; a < scores.gpus(); ++a) {
    for (int b = 0; b < a; ++b) scores.Set(a, b, a % islands == b % islands ? 1210 : 10);
  }
  return scores;
}

TEST(PartitionSearchTest, AnswersADistinctSetOfTheAskedSizeWithAllThatIsRequired) {
  std::mt19937 random(7);
  for (const int gpus : {3, 8, 17, 24, 64}) {
    const PairScores scores = RandomScores(gpus, random);
    for (int size = 2; size < gpus; size += gpus < 64 ? 1 + size / 4 : size) {
      for (const std::vector<int>& required :
           {std::vector<int>{}, {0}, {gpus - 1}, {gpus - 1, gpus / 2}}) {
        const std::vector<int> group = BestGroupBySearch(scores, required, size);
        ASSERT_EQ(group.size(), static_cast<std::size_t>(size));
        EXPECT_TRUE(std::ranges::is_sorted(group, std::less_equal()));
        EXPECT_GE(group.front(), 0);
        EXPECT_LT(group.back(), gpus);
        for (const int gpu : required) EXPECT_TRUE(std::ranges::binary_search(group, gpu));
        EXPECT_EQ(BestGroupBySearch(scores, required, size), group);
      }
    }
  }
}

TEST(PartitionSearchTest, FindsWholeIslandsAmongSixtyFourGpus) {
  const PairScores scores = Islands(8, 8);
  EXPECT_THAT(BestGroup(scores, {}, 8), ElementsAre(0, 8, 16, 24, 32, 40, 48, 56));
  const std::vector<int> required = {11};
  EXPECT_THAT(BestGroup(scores, required, 8), ElementsAre(3, 11, 19, 27, 35, 43, 51, 59));
}

TEST(PartitionSearchTest, TakesABrokenIslandRatherThanBreakingAWholeOne) {
  // Four islands of six; of the last one only two GPUs are free: a pod of two belongs there, but
  // any pair within an island is as good for the rest. A pod of six must get a whole island.
  std::vector<int> free(24);
  std::iota(free.begin(), free.end(), 0);
  std::erase_if(free, [](int gpu) { return gpu % 4 == 0 && gpu > 4; });
  ASSERT_EQ(free.size(), 20U);
  const PairScores scores = Islands(4, 6).Of(free);
  std::vector<int> group;
  for (const int at : BestGroup(scores, {}, 6)) group.push_back(free[static_cast<std::size_t>(at)]);
  EXPECT_THAT(group, ElementsAre(1, 5, 9, 13, 17, 21));
}

TEST(PartitionSearchTest, IsTheOptimumOrNearItWhereTheOptimumIsKnown) {
  // Total score of the answer's split is not visible; compare the sets' own scores on matrices
  // that have one clear best split.
  for (const int islands : {2, 4, 8}) {
    const PairScores scores = Islands(islands, 16 / islands);
    EXPECT_EQ(BestGroupBySearch(scores, {}, 16 / islands),
              BestGroupExact(scores, {}, 16 / islands));
  }
}

TEST(PartitionSearchTest, SizeOneAndUniformFabricNeedNoSearch) {
  PairScores scores(40);
  EXPECT_THAT(BestGroup(scores, {}, 3), ElementsAre(0, 1, 2));
  for (int gpu = 1; gpu < 40; ++gpu) scores.Set(0, gpu, 20);
  EXPECT_THAT(BestGroup(scores, {}, 1), ElementsAre(1));
}

}  // namespace
}  // namespace ndp::resource
