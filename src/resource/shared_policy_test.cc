#include "resource/shared_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "resource/tied_gpus.h"

namespace ndp::resource {
namespace {

using ::testing::ElementsAre;
using enum config::AllocationPolicy;

// One device per GPU, {total, available, required} each.
std::vector<SharedDevice> Gpus(std::initializer_list<std::array<int, 3>> loads) {
  std::vector<SharedDevice> devices;
  for (const auto& [total, available, required] : loads) {
    devices.push_back({static_cast<int>(devices.size()), total, available, required});
  }
  return devices;
}

// Two GPUs of `each` MIG devices, unshared; `taken` of the first GPU's are in use.
std::vector<SharedDevice> TwoParents(int each, int taken) {
  std::vector<SharedDevice> devices;
  for (int gpu = 0; gpu < 2; ++gpu) {
    for (int i = 0; i < each; ++i) {
      devices.push_back({.gpu = gpu, .total = 1, .available = gpu == 0 && i < taken ? 0 : 1});
    }
  }
  return devices;
}

TEST(SharedPolicyTest, DistributedTakesFromTheLeastAllocated) {
  EXPECT_THAT(Share(Gpus({{4, 1, 0}, {4, 3, 0}, {4, 2, 0}}), {}, kDistributed, 1),
              ElementsAre(0, 1, 0));
  EXPECT_THAT(Share(Gpus({{4, 1, 0}, {4, 3, 0}, {4, 2, 0}}), {}, kDistributed, 3),
              ElementsAre(0, 2, 1));
}

TEST(SharedPolicyTest, DistributedPrefersAmongEquallyAllocatedTheOnePickedFromLeast) {
  // After one from GPU 1 both have two allocated: GPU 0 has given nothing yet.
  EXPECT_THAT(Share(Gpus({{4, 2, 0}, {4, 3, 0}}), {}, kDistributed, 2), ElementsAre(1, 1));
}

TEST(SharedPolicyTest, DistributedSpreadsOverAllAndStopsAtWhatIsFree) {
  EXPECT_THAT(Share(Gpus({{4, 4, 0}, {4, 4, 0}, {1, 1, 0}}), {}, kDistributed, 7),
              ElementsAre(3, 3, 1));
}

TEST(SharedPolicyTest, PackedTakesFromTheMostAllocatedThatHasAFreeOne) {
  EXPECT_THAT(Share(Gpus({{4, 4, 0}, {4, 0, 0}, {4, 2, 0}}), {}, kPacked, 1), ElementsAre(0, 0, 1));
  EXPECT_THAT(Share(Gpus({{4, 4, 0}, {4, 0, 0}, {4, 2, 0}}), {}, kPacked, 3), ElementsAre(1, 0, 2));
}

TEST(SharedPolicyTest, RequiredOnesCountAsPicked) {
  EXPECT_THAT(Share(Gpus({{4, 4, 2}, {4, 4, 0}}), {}, kDistributed, 4), ElementsAre(2, 2));
  EXPECT_THAT(Share(Gpus({{4, 4, 0}, {4, 4, 1}}), {}, kPacked, 3), ElementsAre(0, 3));
}

TEST(SharedPolicyTest, PackedFillsOneParentBeforeOpeningAnother) {
  EXPECT_THAT(Share(TwoParents(3, 0), {}, kPacked, 3), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(Share(TwoParents(3, 1), {}, kPacked, 3), ElementsAre(0, 1, 1, 1, 0, 0));
}

TEST(SharedPolicyTest, DistributedSpreadsOverParents) {
  EXPECT_THAT(Share(TwoParents(3, 0), {}, kDistributed, 3), ElementsAre(1, 1, 0, 1, 0, 0));
  EXPECT_THAT(Share(TwoParents(3, 2), {}, kDistributed, 2), ElementsAre(0, 0, 0, 1, 1, 0));
}

TEST(SharedPolicyTest, WithinAParentTheSameRuleHoldsForItsDevices) {
  const std::vector<SharedDevice> devices = {{.gpu = 0, .total = 4, .available = 4},
                                             {.gpu = 0, .total = 4, .available = 2}};
  // The first device has fewest allocated until both have two; then it is picked from more often.
  EXPECT_THAT(Share(devices, {}, kDistributed, 3), ElementsAre(2, 1));
  EXPECT_THAT(Share(devices, {}, kPacked, 3), ElementsAre(1, 2));
}

TEST(SharedPolicyTest, PackedTakesAGpuThatHoldsAllRatherThanTwo) {
  const std::vector<SharedDevice> devices = {{.gpu = 0, .total = 2, .available = 2},
                                             {.gpu = 1, .total = 7, .available = 7}};
  EXPECT_THAT(Share(devices, {}, kPacked, 4), ElementsAre(0, 4));
}

TEST(SharedPolicyTest, TiesGoToTheBestConnectedGpus) {
  PairScores scores(4);
  scores.Set(1, 3, 410);
  const auto gpus = Gpus({{4, 4, 0}, {4, 4, 0}, {4, 4, 0}, {4, 4, 0}});
  EXPECT_THAT(Share(gpus, scores, kDistributed, 2), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Share(gpus, scores, kPacked, 6), ElementsAre(0, 4, 0, 2));
}

TEST(SharedPolicyTest, TiesGoToTheBestConnectedToWhatIsRequired) {
  PairScores scores(4);
  scores.Set(2, 3, 410);
  const auto gpus = Gpus({{4, 4, 0}, {4, 4, 0}, {4, 4, 0}, {4, 4, 1}});
  EXPECT_THAT(Share(gpus, scores, kDistributed, 2), ElementsAre(0, 0, 1, 1));
}

TEST(SharedPolicyTest, TiesOfScoreGoToOneNumaNodeThenTheLowestNumbers) {
  PairScores scores(4);
  for (int gpu = 0; gpu < 4; ++gpu) scores.SetNumaNode(gpu, gpu == 1 || gpu == 2 ? 1 : 0);
  const auto gpus = Gpus({{4, 4, 0}, {4, 4, 0}, {4, 4, 0}, {4, 4, 0}});
  EXPECT_THAT(Share(gpus, scores, kDistributed, 2), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(Share(gpus, {}, kDistributed, 2), ElementsAre(1, 1, 0, 0));
}

// The rule by its wording, one pick at a time; only the numbers decide ties.
std::vector<int> OneByOne(std::vector<SharedDevice> devices, SharedPolicy policy, int size) {
  std::vector<int> taken;
  for (const SharedDevice& device : devices) taken.push_back(device.required);
  int left = size - std::accumulate(taken.begin(), taken.end(), 0);
  for (; left > 0; --left) {
    std::optional<std::size_t> next;
    const auto key = [&](std::size_t i) {
      const int allocated = devices[i].total - devices[i].available + taken[i];
      return policy == kPacked ? std::pair(-allocated, -taken[i]) : std::pair(allocated, taken[i]);
    };
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].available == taken[i]) continue;
      if (!next || key(i) < key(*next)) next = i;
    }
    ++taken[*next];
  }
  return taken;
}

TEST(SharedPolicyTest, EqualsPickingOneByOneOnRandomLoads) {
  std::mt19937 random(99);
  const auto up_to = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<SharedDevice> devices;
    int required = 0;
    int available = 0;
    // One total for all: with several, packed looks for a GPU that holds all the rest.
    const int total = 1 + up_to(5);
    for (int gpu = 0; gpu <= up_to(6); ++gpu) {
      SharedDevice device{.gpu = gpu, .total = total};
      device.available = up_to(device.total);
      device.required = up_to(3) == 0 ? up_to(device.available) : 0;
      required += device.required;
      available += device.available;
      devices.push_back(device);
    }
    const int size = required + up_to(available - required);
    for (const SharedPolicy policy : {kDistributed, kPacked}) {
      std::vector<int> shares = Share(devices, {}, policy, size);
      std::vector<int> expected = OneByOne(devices, policy, size);
      ASSERT_EQ(std::accumulate(shares.begin(), shares.end(), 0), size);
      // Tied GPUs may differ in which gives the odd one; loads must not.
      std::vector<int> after;
      std::vector<int> expected_after;
      for (std::size_t i = 0; i < devices.size(); ++i) {
        ASSERT_GE(shares[i], devices[i].required);
        ASSERT_LE(shares[i], devices[i].available);
        after.push_back(total - devices[i].available + shares[i]);
        expected_after.push_back(total - devices[i].available + expected[i]);
      }
      std::ranges::sort(after);
      std::ranges::sort(expected_after);
      ASSERT_EQ(after, expected_after) << "round " << round;
    }
  }
}

TEST(TiedGpusTest, IsTheBestOfAllSets) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> score(0, 4);
  for (int round = 0; round < 50; ++round) {
    PairScores scores(9);
    for (int a = 0; a < 9; ++a) {
      for (int b = 0; b < a; ++b) scores.Set(a, b, score(random));
    }
    const std::vector<int> chosen = {8, 3};
    const std::vector<int> tied = {0, 1, 2, 4, 5, 6, 7};
    const int size = 1 + round % 6;
    std::vector<int> best;
    int best_score = -1;
    for (unsigned mask = 0; mask < 1U << tied.size(); ++mask) {
      std::vector<int> set;
      for (std::size_t i = 0; i < tied.size(); ++i) {
        if ((mask >> i & 1) != 0) set.push_back(tied[i]);
      }
      if (static_cast<int>(set.size()) != size) continue;
      std::vector<int> with = set;
      with.insert(with.end(), chosen.begin(), chosen.end());
      const int sum = scores.SetScore(with);
      if (sum > best_score || (sum == best_score && set < best)) {
        best = set;
        best_score = sum;
      }
    }
    ASSERT_EQ(ChooseTied(scores, chosen, tied, size), best) << "round " << round;
  }
}

TEST(TiedGpusTest, PastSixteenGrowsTheBestIsland) {
  PairScores scores(24);
  for (const int a : {5, 11, 17}) {
    for (const int b : {5, 11, 17}) {
      if (a != b) scores.Set(a, b, 1210);
    }
  }
  std::vector<int> tied(24);
  std::iota(tied.begin(), tied.end(), 0);
  EXPECT_THAT(ChooseTied(scores, {}, tied, 3), ElementsAre(5, 11, 17));
}

}  // namespace
}  // namespace ndp::resource
