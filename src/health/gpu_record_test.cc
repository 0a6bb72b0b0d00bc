#include "health/gpu_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::health {
namespace {
using ::testing::Eq;
using ::testing::Optional;

TEST(CountersTest, AnyThatFellIsNamed) {
  const Counters before{
      .uncorrected_ecc = 2, .corrected_ecc = 5, .pcie_replays = 7, .energy_mj = 1000};
  EXPECT_THAT(before.FellTo(before), Eq(std::nullopt));
  Counters now = before;
  now.energy_mj = 10;
  EXPECT_THAT(before.FellTo(now), Optional(Eq("total energy")));
  now.pcie_replays = 0;
  EXPECT_THAT(before.FellTo(now), Optional(Eq("PCIe replays")));
}

TEST(CountersTest, GrowingOrAbsentSaysNothing) {
  const Counters before{.uncorrected_ecc = 2, .energy_mj = 1000};
  EXPECT_THAT(before.FellTo({.uncorrected_ecc = 3, .energy_mj = 1001}), Eq(std::nullopt));
  EXPECT_THAT(before.FellTo({.corrected_ecc = 0}), Eq(std::nullopt));
  EXPECT_THAT(Counters{}.FellTo({.energy_mj = 0}), Eq(std::nullopt));
}

TEST(CountersTest, AValueThatCannotBeReadKeepsTheOldOne) {
  Counters counters{.uncorrected_ecc = 2, .energy_mj = 1000};
  counters.Update({.energy_mj = 2000});
  EXPECT_EQ(counters, (Counters{.uncorrected_ecc = 2, .energy_mj = 2000}));
}

TEST(GpuRecordTest, BlankIsWhatANewProcessWouldAssume) {
  GpuRecord record;
  EXPECT_TRUE(record.healthy());
  EXPECT_TRUE(record.blank());
  record.recovered = MonoTime(std::chrono::seconds(1));
  EXPECT_TRUE(record.healthy());
  EXPECT_FALSE(record.blank()) << "a relapse would be told by it";
  record.conditions[1] = Cause{.reason = "x"};
  EXPECT_FALSE(record.healthy());
}

}  // namespace
}  // namespace ndp::health
