#include "health/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::health {
namespace {
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr WallTime kThen{std::chrono::hours(1000)};

inventory::Gpu MigGpu() {
  return {.nvml = {.uuid = "GPU-m"},
          .mig = {{.nvml = {.uuid = "MIG-2", .gpu_instance = 2}},
                  {.nvml = {.uuid = "MIG-3", .gpu_instance = 3}}}};
}

Cause Fault(std::string reason, Scope scope = {}, CauseClass cause_class = CauseClass::kFault) {
  return {.cause_class = cause_class,
          .scope = scope,
          .xid = 61,
          .reason = std::move(reason),
          .next_step = "step",
          .since = kThen,
          .count = 3};
}

class BoardTest : public testing::Test {
 protected:
  HealthBoard Build() const {
    return BuildBoard({{.gpu = &full_, .record = &full_record_, .hung = hung_},
                       {.gpu = &mig_, .record = &mig_record_, .warnings = {"warning"}}},
                      fences_, driver_);
  }
  inventory::Gpu full_{.nvml = {.uuid = "GPU-f"}};
  inventory::Gpu mig_ = MigGpu();
  GpuRecord full_record_;
  GpuRecord mig_record_;
  bool hung_ = false;
  std::map<std::string, Fenced> fences_;
  DriverHealth driver_;
};

TEST_F(BoardTest, KnowsEveryDeviceAndWarnsWithoutHarm) {
  const HealthBoard board = Build();
  EXPECT_THAT(board.devices, SizeIs(4));
  for (const auto& [uuid, device] : board.devices) EXPECT_TRUE(device.healthy) << uuid;
  EXPECT_THAT(board.Of("MIG-2").warnings, SizeIs(1));
  EXPECT_TRUE(board.Of("GPU-unknown").healthy);
}

TEST_F(BoardTest, SaysEverythingAboutAFault) {
  full_record_.causes = {Fault("XID 61")};
  EXPECT_EQ(Build().Of("GPU-f"), (DeviceHealth{.healthy = false,
                                               .reason = "XID 61",
                                               .cause_class = "fault",
                                               .xid = 61,
                                               .next_step = "step",
                                               .since = kThen,
                                               .count = 3}));
}

TEST_F(BoardTest, AFaultOfOneInstanceReachesItAndTheGpuAsAWhole) {
  mig_record_.causes = {Fault("XID 61", {.gpu_instance = 2, .compute_instance = 0})};
  const HealthBoard board = Build();
  EXPECT_FALSE(board.Of("MIG-2").healthy);
  EXPECT_TRUE(board.Of("MIG-3").healthy);
  EXPECT_FALSE(board.Of("GPU-m").healthy);
  EXPECT_TRUE(board.Of("GPU-f").healthy);
}

TEST_F(BoardTest, TheHeaviestCauseIsToldWithTheEarliestTime) {
  Cause reset = Fault("needs reset", {}, CauseClass::kReset);
  reset.since = kThen + std::chrono::hours(1);
  full_record_.causes = {Fault("first"), reset};
  full_record_.conditions[0] = Fault("hot", {}, CauseClass::kCondition);
  EXPECT_EQ(Build().Of("GPU-f").reason, "needs reset");
  EXPECT_EQ(Build().Of("GPU-f").since, kThen);
}

TEST_F(BoardTest, AConditionAloneIsAReason) {
  mig_record_.conditions[3] = Fault("hot", {}, CauseClass::kCondition);
  EXPECT_EQ(Build().Of("MIG-3").cause_class, "condition");
}

TEST_F(BoardTest, QuarantineIsInTheReason) {
  full_record_.causes = {Fault("XID 61")};
  full_record_.quarantined = true;
  full_record_.relapses.resize(4);
  EXPECT_EQ(Build().Of("GPU-f").reason, "quarantined after 4 relapses in 24 hours: XID 61");
  EXPECT_THAT(Build().Of("GPU-f").next_step, HasSubstr("ndp health clear"));
}

TEST_F(BoardTest, AHangIsAClassOfItsOwn) {
  full_record_.causes = {Fault("a driver call hangs")};
  hung_ = true;
  EXPECT_EQ(Build().Of("GPU-f").cause_class, "hang");
}

TEST_F(BoardTest, ADriverThatIsGoneTakesAllAfterTheGracePeriod) {
  driver_ = {.available = false, .reason = "nvmlInit fails", .since = kThen, .grace_over = false};
  EXPECT_TRUE(Build().Of("GPU-f").healthy);
  driver_.grace_over = true;
  const HealthBoard board = Build();
  for (const auto& [uuid, device] : board.devices) {
    EXPECT_FALSE(device.healthy) << uuid;
    EXPECT_EQ(device.cause_class, "driver");
    EXPECT_THAT(device.reason, HasSubstr("nvmlInit fails"));
  }
}

TEST_F(BoardTest, AFenceCoversAGpuWithItsMigDevicesAndIsTheReason) {
  mig_record_.causes = {Fault("XID 61")};
  fences_["GPU-m"] = {.reason = "RMA 17", .since = kThen};
  const HealthBoard board = Build();
  EXPECT_EQ(board.Of("GPU-m").reason, "fenced: RMA 17");
  EXPECT_EQ(board.Of("MIG-3").cause_class, "fence");
  EXPECT_TRUE(board.Of("GPU-f").healthy);
}

TEST_F(BoardTest, AFenceMayNameOneMigDevice) {
  fences_["MIG-3"] = {.reason = "mine"};
  const HealthBoard board = Build();
  EXPECT_FALSE(board.Of("MIG-3").healthy);
  EXPECT_TRUE(board.Of("MIG-2").healthy);
  EXPECT_TRUE(board.Of("GPU-m").healthy);
}

TEST_F(BoardTest, TransitionsAreChangesOfVerdictOrReasonNotOfCounts) {
  const HealthBoard before = Build();
  EXPECT_THAT(Transitions(before, before), IsEmpty());
  full_record_.causes = {Fault("XID 61")};
  const HealthBoard bad = Build();
  ASSERT_THAT(Transitions(before, bad), SizeIs(1));
  EXPECT_EQ(Transitions(before, bad)[0].uuid, "GPU-f");
  full_record_.causes[0].count = 4;
  EXPECT_THAT(Transitions(bad, Build()), IsEmpty());
  EXPECT_TRUE(bad.SameVerdicts(Build()));
  EXPECT_NE(bad, Build());
  full_record_.causes.clear();
  EXPECT_THAT(Transitions(bad, Build()), SizeIs(1));
  EXPECT_FALSE(bad.SameVerdicts(Build()));
}

}  // namespace
}  // namespace ndp::health
