#include "resource/mig_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "resource/test_inventory.h"

namespace ndp::resource {
namespace {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;
using enum config::MigSinglePartial;

SingleDecision Decide(const inventory::Inventory& inventory,
                      config::MigSinglePartial partial = kNone,
                      const MigLayouts* previous = nullptr) {
  std::vector<int> gpus(inventory.gpus.size());
  std::iota(gpus.begin(), gpus.end(), 0);
  return DecideSingle(inventory, gpus, partial, LayoutsOf(inventory), previous);
}

TEST(MigLayoutTest, OneLayoutOnAllGpusIsServed) {
  EXPECT_THAT(Decide(TestGpus(2)).served, Optional(Eq("")));
  EXPECT_THAT(
      Decide(TestInventory({TestMigGpu(0, {"1g.5gb"}), TestMigGpu(1, {"1g.5gb", "1g.5gb"})}))
          .served,
      Optional(Eq("1g.5gb")));
}

TEST(MigLayoutTest, SeveralLayoutsServeNothingAndTheReasonTellsWhoHasWhat) {
  const SingleDecision decision = Decide(TestInventory(
      {TestMigGpu(0, {"1g.5gb"}), TestMigGpu(1, {"1g.5gb"}), TestMigGpu(2, {}), TestGpu(3)}));
  EXPECT_EQ(decision.served, std::nullopt);
  EXPECT_THAT(decision.reason, AllOf(HasSubstr("MIG 1g.5gb on GPUs 0, 1"),
                                     HasSubstr("MIG mode without MIG devices on GPU 2"),
                                     HasSubstr("no MIG on GPU 3")));
}

TEST(MigLayoutTest, SeveralProfilesOnEveryGpuAreNoLayoutToServe) {
  const auto gpus =
      TestInventory({TestMigGpu(0, {"1g.5gb", "2g.10gb"}), TestMigGpu(1, {"2g.10gb", "1g.5gb"})});
  EXPECT_EQ(Decide(gpus).served, std::nullopt);
  EXPECT_THAT(Decide(gpus).reason, HasSubstr("MIG 1g.5gb,2g.10gb on GPUs 0, 1"));
}

TEST(MigLayoutTest, EmptyMigGpusAndUnknownProfilesAreNoLayoutToServe) {
  EXPECT_EQ(Decide(TestInventory({TestMigGpu(0, {})})).served, std::nullopt);
  EXPECT_EQ(Decide(TestInventory({TestMigGpu(0, {""})})).served, std::nullopt);
}

TEST(MigLayoutTest, GpuInTroubleHasNoSay) {
  auto inventory = TestInventory({TestMigGpu(0, {"1g.5gb"}), TestGpu(1)});
  inventory.gpus[1].trouble = "GPU is lost";
  EXPECT_THAT(Decide(inventory).served, Optional(Eq("1g.5gb")));
}

TEST(MigLayoutTest, MajorityIsServedAfterTwoEqualScans) {
  const auto inventory = TestInventory(
      {TestMigGpu(0, {"3g.20gb"}), TestMigGpu(1, {"1g.5gb"}), TestMigGpu(2, {"1g.5gb"})});
  const MigLayouts same = LayoutsOf(inventory);
  MigLayouts other = same;
  other["GPU-0"] = "none";
  EXPECT_EQ(Decide(inventory, kMajority).served, std::nullopt);
  EXPECT_EQ(Decide(inventory, kMajority, &other).served, std::nullopt);
  EXPECT_THAT(Decide(inventory, kMajority, &same).served, Optional(Eq("1g.5gb")));
  EXPECT_EQ(Decide(inventory, kNone, &same).served, std::nullopt);
}

TEST(MigLayoutTest, MajorityThatCannotBeServedServesNothing) {
  const auto inventory =
      TestInventory({TestMigGpu(0, {"3g.20gb"}), TestMigGpu(1, {}), TestMigGpu(2, {})});
  const MigLayouts same = LayoutsOf(inventory);
  EXPECT_EQ(Decide(inventory, kMajority, &same).served, std::nullopt);
}

}  // namespace
}  // namespace ndp::resource
