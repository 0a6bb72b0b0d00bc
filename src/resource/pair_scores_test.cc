#include "resource/pair_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::resource {
namespace {

TEST(PairScoresTest, PciePartPlusOneHundredPerNvLink) {
  EXPECT_EQ(PairScore(0, 0), 60);
  EXPECT_EQ(PairScore(10, 0), 50);
  EXPECT_EQ(PairScore(20, 0), 40);
  EXPECT_EQ(PairScore(30, 0), 30);
  EXPECT_EQ(PairScore(40, 0), 20);
  EXPECT_EQ(PairScore(50, 0), 10);
  EXPECT_EQ(PairScore(50, 2), 210);
  EXPECT_EQ(PairScore(40, 36), 3620);
}

TEST(PairScoresTest, UnknownTopologyLevelCountsAsAcross) { EXPECT_EQ(PairScore(35, 1), 110); }

TEST(PairScoresTest, IsSymmetricAndZeroOnItself) {
  PairScores scores(3);
  scores.Set(2, 0, 110);
  EXPECT_EQ(scores.Score(0, 2), 110);
  EXPECT_EQ(scores.Score(2, 0), 110);
  EXPECT_EQ(scores.Score(1, 1), 0);
  EXPECT_EQ(scores.Score(0, 1), kScoreAcross);
}

TEST(PairScoresTest, GpuThatIsNotReadYetIsAcrossFromAll) {
  const PairScores scores(2);
  EXPECT_EQ(scores.Score(0, 5), kScoreAcross);
  EXPECT_EQ(scores.Score(5, 5), 0);
  EXPECT_FALSE(scores.SameNumaNode(0, 5));
}

TEST(PairScoresTest, UnknownNumaNodesAreNotTheSame) {
  PairScores scores(4);
  scores.SetNumaNode(0, 0);
  scores.SetNumaNode(1, 0);
  EXPECT_TRUE(scores.SameNumaNode(0, 1));
  EXPECT_FALSE(scores.SameNumaNode(2, 3));
}

TEST(PairScoresTest, PartKeepsScoresAndNodesUnderNewNumbers) {
  PairScores scores(4);
  scores.Set(1, 3, 410);
  scores.SetNumaNode(1, 1);
  scores.SetNumaNode(3, 1);
  const std::vector<int> gpus = {3, 0, 1};
  const PairScores part = scores.Of(gpus);
  EXPECT_EQ(part.gpus(), 3);
  EXPECT_EQ(part.Score(0, 2), 410);
  EXPECT_EQ(part.Score(0, 1), kScoreAcross);
  EXPECT_TRUE(part.SameNumaNode(0, 2));
  EXPECT_FALSE(part.SameNumaNode(0, 1));
}

TEST(PairScoresTest, UniformMeansEveryPairAlike) {
  PairScores scores(3);
  EXPECT_TRUE(scores.Uniform());
  scores.Set(1, 2, 20);
  EXPECT_FALSE(scores.Uniform());
  EXPECT_TRUE(PairScores().Uniform());
}

TEST(PairScoresTest, SetScoreIsTheSumOverPairs) {
  PairScores scores(4);
  scores.Set(0, 1, 100);
  scores.Set(1, 2, 200);
  const std::vector<int> gpus = {0, 1, 2};
  EXPECT_EQ(scores.SetScore(gpus), 310);
}

}  // namespace
}  // namespace ndp::resource
