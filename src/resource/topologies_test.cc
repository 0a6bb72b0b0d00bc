// Machines as their makers publish them, and the sets that a person would pick.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resource/partition.h"

namespace ndp::resource {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

// DGX-1 with V100 (`nvidia-smi topo -m`): hybrid cube mesh of six links per GPU, some doubled; two
// sockets with four GPUs each.
PairScores Dgx1V100() {
  constexpr int kLinks[8][8] = {
      {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
      {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
      {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
  };
  PairScores scores(8);
  for (int a = 0; a < 8; ++a) {
    int links = 0;
    for (int b = 0; b < 8; ++b) {
      EXPECT_EQ(kLinks[a][b], kLinks[b][a]);
      links += kLinks[a][b];
      if (a == b) continue;
      const bool one_switch = a / 2 == b / 2;
      const bool one_socket = a / 4 == b / 4;
      scores.Set(a, b,
                 PairScore(one_switch   ? 10
                           : one_socket ? 30
                                        : 50,
                           static_cast<unsigned>(kLinks[a][b])));
    }
    EXPECT_EQ(links, 6);
  }
  return scores;
}

// `gpus` behind NVSwitch: equal links between all, NUMA differs.
PairScores NvSwitch(int gpus, unsigned links) {
  PairScores scores(gpus);
  for (int a = 0; a < gpus; ++a) {
    scores.SetNumaNode(a, a / (gpus / 2));
    for (int b = 0; b < a; ++b) {
      const bool one_socket = a / (gpus / 2) == b / (gpus / 2);
      scores.Set(a, b, PairScore(one_socket ? 40 : 50, links));
    }
  }
  return scores;
}

// Two sockets, on each two PCIe switches of two GPUs.
PairScores TwoSockets() {
  PairScores scores(8);
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < a; ++b) {
      scores.Set(a, b, PairScore(a / 2 == b / 2 ? 10 : a / 4 == b / 4 ? 30 : 50, 0));
    }
  }
  return scores;
}

std::vector<int> Among(const PairScores& scores, const std::vector<int>& free, int size) {
  std::vector<int> gpus;
  for (const int at : BestGroup(scores.Of(free), {}, size)) {
    gpus.push_back(free[static_cast<std::size_t>(at)]);
  }
  return gpus;
}

TEST(TopologiesTest, CubeMeshGivesDoublyLinkedPairs) {
  const PairScores scores = Dgx1V100();
  const std::vector<int> pair = BestGroup(scores, {}, 2);
  EXPECT_GE(scores.SetScore(pair), 200) << pair[0] << " " << pair[1];
}

TEST(TopologiesTest, CubeMeshGivesOneBoardHalfForFour) {
  EXPECT_THAT(BestGroup(Dgx1V100(), {}, 4), ElementsAre(0, 1, 2, 3));
  const std::vector<int> required = {6};
  EXPECT_THAT(BestGroup(Dgx1V100(), required, 4), ElementsAre(4, 5, 6, 7));
}

TEST(TopologiesTest, CubeMeshNeverSplitsAPairOverUnlinkedGpus) {
  // GPUs 1, 4 and 7 are free: 4-7 has two links, 1-4 and 1-7 have none.
  EXPECT_THAT(Among(Dgx1V100(), {1, 4, 7}, 2), ElementsAre(4, 7));
  EXPECT_THAT(Among(Dgx1V100(), {1, 4, 7}, 1), ElementsAre(1));
}

TEST(TopologiesTest, NvSwitchStaysOnOneSocket) {
  for (const int gpus : {8, 16}) {
    const PairScores scores = NvSwitch(gpus, 18);
    EXPECT_THAT(BestGroup(scores, {}, 2), ElementsAre(0, 1));
    const std::vector<int> half = BestGroup(scores, {}, gpus / 2);
    EXPECT_EQ(half.back(), gpus / 2 - 1);
  }
}

TEST(TopologiesTest, NvSwitchUsesTheEmptierSocketsRest) {
  // Socket 0 has three free, socket 1 four: a pod of four fits on socket 1.
  EXPECT_THAT(Among(NvSwitch(8, 18), {1, 2, 3, 4, 5, 6, 7}, 4), ElementsAre(4, 5, 6, 7));
}

TEST(TopologiesTest, TwoSocketsGiveOneSwitchThenOneSocket) {
  EXPECT_THAT(BestGroup(TwoSockets(), {}, 2), ElementsAre(0, 1));
  EXPECT_THAT(BestGroup(TwoSockets(), {}, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Among(TwoSockets(), {1, 2, 3, 5, 6, 7}, 2),
              AnyOf(ElementsAre(2, 3), ElementsAre(6, 7)));
}

TEST(TopologiesTest, SingleGpuPodTakesTheGpuWhoseNeighbourIsGone) {
  // 0 is in use: 1 has lost its switch neighbour.
  EXPECT_THAT(Among(TwoSockets(), {1, 2, 3, 4, 5, 6, 7}, 1), ElementsAre(1));
}

}  // namespace
}  // namespace ndp::resource
