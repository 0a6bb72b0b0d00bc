#include "resource/preferred.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "testing/result_matchers.h"

namespace ndp::resource {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using enum config::AllocationPolicy;
using Ids = std::vector<std::string_view>;

DevicePool Pool(int gpus, int replicas) {
  std::vector<PoolDevice> devices;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    // Uuids in another order than the GPUs.
    devices.push_back(
        {.uuid = "GPU-" + std::to_string((gpu * 37 + 11) % 101), .gpu = gpu, .replicas = replicas});
  }
  return DevicePool(std::move(devices));
}

int AsInt(std::size_t size) { return static_cast<int>(size); }

std::vector<std::string> AllIds(const DevicePool& pool) {
  std::vector<std::string> ids;
  for (std::uint32_t slot = 0; slot < pool.size(); ++slot) ids.push_back(pool.Id(slot));
  return ids;
}

const DevicePool& Four() {
  static const DevicePool pool({{.uuid = "a", .gpu = 0},
                                {.uuid = "b", .gpu = 1},
                                {.uuid = "c", .gpu = 2},
                                {.uuid = "d", .gpu = 3}});
  return pool;
}

Result<std::vector<std::string>> AskFour(const Ids& available, const Ids& must, int size) {
  return Prefer(Four(), {}, kDistributed,
                {.available = available, .must_include = must, .size = size});
}

TEST(PreferTest, AnswersInDeviceOrder) {
  EXPECT_THAT(AskFour({"d", "c", "a"}, {}, 2), IsOkAnd(ElementsAre("a", "c")));
  EXPECT_THAT(AskFour({"d", "c", "a"}, {"d"}, 2), IsOkAnd(ElementsAre("a", "d")));
}

TEST(PreferTest, ScoresAreOfTheGpuNotOfTheListPosition) {
  PairScores scores(4);
  scores.Set(2, 3, 110);
  const Ids available = {"d", "c", "b"};
  EXPECT_THAT(Prefer(Four(), scores, kDistributed, {.available = available, .size = 2}),
              IsOkAnd(ElementsAre("c", "d")));
}

TEST(PreferTest, SizeZeroIsAnEmptyAnswer) {
  EXPECT_THAT(AskFour({"a", "b"}, {}, 0), IsOkAnd(IsEmpty()));
  EXPECT_THAT(AskFour({}, {}, 0), IsOkAnd(IsEmpty()));
}

TEST(PreferTest, SizeBelowMustIncludeNamesTheThreeNumbers) {
  EXPECT_THAT(AskFour({"a", "b", "c"}, {"a", "b"}, 1),
              IsErrorThat(Code::kInvalidArgument,
                          HasSubstr("asked for 1, 3 available, 2 must be included")));
}

TEST(PreferTest, TooFewAvailableNamesTheThreeNumbers) {
  EXPECT_THAT(AskFour({"a", "b"}, {"b"}, 3),
              IsErrorThat(Code::kInvalidArgument,
                          AllOf(HasSubstr("too few"),
                                HasSubstr("asked for 3, 2 available, 1 must be included"))));
}

TEST(PreferTest, MustIncludeThatIsNotAvailableIsNamed) {
  EXPECT_THAT(AskFour({"a", "b"}, {"c"}, 1),
              IsErrorThat(Code::kInvalidArgument,
                          AllOf(HasSubstr("not available: c"), HasSubstr("asked for 1"))));
}

TEST(PreferTest, UnknownIdsAreNamed) {
  EXPECT_THAT(AskFour({"a", "y", "x"}, {}, 1),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("available device ids that this "
                                                            "resource does not have: x, y")));
  EXPECT_THAT(AskFour({"a"}, {"a::0"}, 1),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("must-include device ids that this "
                                                            "resource does not have: a::0")));
  EXPECT_THAT(AskFour({"v", "w", "x", "y", "z"}, {}, 1),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("v, w, x and 2 more")));
}

TEST(PreferTest, NegativeSizeIsRefused) {
  EXPECT_THAT(AskFour({"a"}, {}, -1), IsErrorThat(Code::kInvalidArgument, HasSubstr("negative")));
}

TEST(PreferTest, IdNamedTwiceCountsOnce) {
  EXPECT_THAT(AskFour({"a", "a"}, {}, 2), IsError(Code::kInvalidArgument));
  EXPECT_THAT(AskFour({"a", "b"}, {"b", "b"}, 1), IsOkAnd(ElementsAre("b")));
}

TEST(PreferTest, LowestFreeReplicasOfTheChosenDevice) {
  const DevicePool pool({{.uuid = "a", .gpu = 0, .replicas = 12}});
  const Ids available = {"a::11", "a::7", "a::10", "a::2", "a::9"};
  const Ids must = {"a::10"};
  EXPECT_THAT(Prefer(pool, {}, kPacked, {available, must, 3}),
              IsOkAnd(ElementsAre("a::2", "a::7", "a::10")));
}

TEST(PreferTest, PolicyDecidesSharedResources) {
  const DevicePool pool(
      {{.uuid = "a", .gpu = 0, .replicas = 2}, {.uuid = "b", .gpu = 1, .replicas = 2}});
  const std::vector<std::string> ids = AllIds(pool);
  const Ids available(ids.begin(), ids.end());
  EXPECT_THAT(Prefer(pool, {}, kDistributed, {available, {}, 2}),
              IsOkAnd(ElementsAre("a::0", "b::0")));
  EXPECT_THAT(Prefer(pool, {}, kPacked, {available, {}, 2}), IsOkAnd(ElementsAre("a::0", "a::1")));
}

TEST(PreferTest, MigDevicesGoByTheirParents) {
  const DevicePool pool({{.uuid = "MIG-a", .gpu = 0, .mig = true},
                         {.uuid = "MIG-b", .gpu = 0, .mig = true},
                         {.uuid = "MIG-c", .gpu = 1, .mig = true}});
  const Ids available = {"MIG-c", "MIG-b", "MIG-a"};
  EXPECT_THAT(Prefer(pool, {}, kDistributed, {available, {}, 2}),
              IsOkAnd(ElementsAre("MIG-a", "MIG-c")));
  EXPECT_THAT(Prefer(pool, {}, kPacked, {available, {}, 2}),
              IsOkAnd(ElementsAre("MIG-a", "MIG-b")));
}

// Size, membership, must-include, determinism and independence of the order of the request.
TEST(PreferTest, PropertiesHoldUpToSixtyFourGpus) {
  std::mt19937 random(4711);
  const auto up_to = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most)(random);
  };
  // Each number of GPUs with a random size, with the sizes at the ends, and with most of them free.
  for (int round = 0; round < 4 * 64; ++round) {
    const int gpus = 1 + round / 4;
    const int replicas = round % 3 == 2 ? 1 + up_to(5) : 0;
    const DevicePool pool = Pool(gpus, replicas);
    PairScores scores(gpus);
    for (int a = 0; a < gpus; ++a) {
      for (int b = 0; b < a; ++b) scores.Set(a, b, 10 * up_to(round % 5 == 0 ? 1 : 30));
    }
    std::vector<std::string> ids = AllIds(pool);
    std::ranges::shuffle(ids, random);
    if (round % 4 < 2) ids.resize(1 + static_cast<std::size_t>(up_to(AsInt(ids.size()) - 1)));
    Ids available(ids.begin(), ids.end());
    const int most = AsInt(ids.size());
    const int size = std::vector{1 + up_to(most - 1), 1, std::max(1, most - 1), most}.at(
        static_cast<std::size_t>(round % 4));
    Ids must(available.begin(), available.begin() + up_to(std::min(size, 4)));
    const SharedPolicy policy = round % 2 == 0 ? kDistributed : kPacked;

    const auto answer = Prefer(pool, scores, policy, {available, must, size});
    ASSERT_THAT(answer, IsOkAnd(SizeIs(static_cast<std::size_t>(size)))) << "round " << round;
    const std::set<std::string_view> chosen(answer->begin(), answer->end());
    EXPECT_THAT(chosen, SizeIs(static_cast<std::size_t>(size)));
    for (const std::string_view id : chosen) {
      EXPECT_TRUE(std::ranges::find(available, id) != available.end()) << id;
    }
    for (const std::string_view id : must) EXPECT_TRUE(chosen.contains(id)) << id;

    std::ranges::shuffle(available, random);
    std::ranges::reverse(must);
    const auto again = Prefer(pool, scores, policy, {available, must, size});
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(*again, *answer) << "round " << round;
  }
}

}  // namespace
}  // namespace ndp::resource
