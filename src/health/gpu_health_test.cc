#include "health/gpu_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::health {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class GpuHealthTest : public testing::Test {
 protected:
  config::Health settings_;  // defaults: hold-off 60 s, 3 probes, 10 s apart
  ManualClock clock_;
  GpuHealth gpu_{clock_, settings_};
  nvml::HealthSample sample_;  // what the GPU shows when looked at
  std::optional<nvml::Failure> failure_;
  CheckContext context_;

  void Look(const GpuHealth::Look& look) { gpu_.OnExamination(look); }
  void Look() {
    const Examination examination{.failure = failure_, .uuid = "GPU-a", .sample = sample_};
    gpu_.OnExamination({.examination = examination,
                        .expected_uuid = "GPU-a",
                        .checks = settings_.polling.checks,
                        .context = context_});
  }
  // Looks whenever the GPU wants it, for `span`. Returns when it became Healthy, if it did.
  std::optional<Duration> Run(Duration span) {
    const MonoTime start = clock_.Now();
    while (clock_.Now() < start + span) {
      const auto next = gpu_.NextLook();
      if (!next || *next > start + span) break;
      if (*next > clock_.Now()) clock_.Advance(*next - clock_.Now());
      Look();
      if (gpu_.healthy()) return clock_.Now() - start;
    }
    if (start + span > clock_.Now()) clock_.Advance(start + span - clock_.Now());
    return std::nullopt;
  }
  void Fail(int status) {
    failure_ = nvml::Failure{.status = status, .call = "nvmlX", .text = "t"};
  }
  void Xid(std::uint64_t xid, XidClass xid_class = XidClass::kFault, Scope scope = {}) {
    gpu_.OnXid(xid, xid_class, scope);
  }
  std::string Reason() const {
    return gpu_.record().causes.empty() ? "" : gpu_.record().causes.front().reason;
  }
};

TEST_F(GpuHealthTest, IsHealthyAndWantsNothingAtFirst) {
  EXPECT_TRUE(gpu_.healthy());
  EXPECT_FALSE(gpu_.NextLook());
}

TEST_F(GpuHealthTest, HarmlessClassesChangeNothing) {
  Xid(14, XidClass::kIgnore);
  Xid(31, XidClass::kApplication);
  Xid(154, XidClass::kDriver);
  EXPECT_TRUE(gpu_.healthy());
}

TEST_F(GpuHealthTest, AFaultIsOverAfterHoldOffAndThreeProbes) {
  Xid(61);
  EXPECT_FALSE(gpu_.healthy());
  EXPECT_EQ(Reason(), "XID 61");
  EXPECT_EQ(Run(10min), 80s);
}

TEST_F(GpuHealthTest, EachFaultBeginsTheHoldOffAgain) {
  Xid(61);
  EXPECT_EQ(Run(50s), std::nullopt);
  Xid(61);
  EXPECT_EQ(gpu_.record().causes.front().count, 2U);
  EXPECT_EQ(Run(10min), 80s);
}

TEST_F(GpuHealthTest, ProbesMustBeGoodInARow) {
  Xid(61);
  clock_.Advance(60s);
  Look();
  clock_.Advance(10s);
  Fail(nvml::kUnknown);
  Look();
  failure_.reset();
  EXPECT_EQ(Run(10min), 30s);
}

TEST_F(GpuHealthTest, LooksThatAreNotDueAreNoProbes) {
  Xid(61);
  for (int i = 0; i < 50; ++i) {
    clock_.Advance(1s);
    Look();
  }
  EXPECT_FALSE(gpu_.healthy());
  clock_.Advance(10s);
  for (int i = 0; i < 10; ++i) Look();
  EXPECT_FALSE(gpu_.healthy()) << "ten looks at one moment are one probe";
}

TEST_F(GpuHealthTest, AnotherGpuAtItsAddressIsNoGoodProbe) {
  Xid(61);
  const Examination other{.uuid = "GPU-b"};
  for (int i = 0; i < 60; ++i) {
    clock_.Advance(10s);
    Look({.examination = other, .expected_uuid = "GPU-a", .checks = {}, .context = {}});
  }
  EXPECT_FALSE(gpu_.healthy());
}

TEST_F(GpuHealthTest, ARemapFailureIsNoGoodProbeEvenWithItsCheckOff) {
  settings_.polling.checks.row_remap = false;
  gpu_.Configure(settings_);
  sample_.remapped_rows = {.failure = true};
  Xid(61);
  EXPECT_EQ(Run(10min), std::nullopt);
}

TEST_F(GpuHealthTest, ResetClassNeedsEvidence) {
  Xid(95, XidClass::kReset);
  EXPECT_EQ(Run(1h), std::nullopt) << "cheap queries that work are no evidence";
  sample_.total_energy_mj = 1000;
  Run(1min);
  sample_.total_energy_mj = 5;
  EXPECT_LE(Run(10min), 40s);
  EXPECT_TRUE(gpu_.healthy());
  EXPECT_THAT(gpu_.TakeNotes(), ElementsAre(HasSubstr("total energy")));
}

TEST_F(GpuHealthTest, ResetClassIsTheWholeGpus) {
  Xid(95, XidClass::kReset, {.gpu_instance = 2});
  EXPECT_TRUE(gpu_.record().causes.front().scope.whole());
}

TEST_F(GpuHealthTest, EvidenceDoesNotShortenTheHoldOff) {
  sample_.volatile_uncorrected_ecc = 3;
  Look();
  Xid(48, XidClass::kReset);
  clock_.Advance(5s);
  EXPECT_EQ(gpu_.AfterReset(), "") << "nobody has reset it yet";
  sample_.volatile_uncorrected_ecc = 0;
  Look();
  EXPECT_FALSE(gpu_.record().awaits_reset);
  EXPECT_THAT(gpu_.AfterReset(), HasSubstr("a reset was seen; it is Healthy after 3 good looks"));
  EXPECT_EQ(Run(10min), 75s);
}

TEST_F(GpuHealthTest, AfterAResetWithoutRecoveryAPersonClearsIt) {
  settings_.recovery.enabled = false;
  gpu_.Configure(settings_);
  Xid(48, XidClass::kReset);
  gpu_.OnModuleReloaded();
  EXPECT_THAT(gpu_.AfterReset(), HasSubstr("ndp health clear"));
  gpu_.OnAbsent();
  EXPECT_EQ(gpu_.AfterReset(), "");
}

TEST_F(GpuHealthTest, RecoveryActionMakesItUnhealthyUntilItIsBackToNone) {
  gpu_.OnRecoveryAction(1);
  EXPECT_EQ(Reason(), "the driver asks for recovery action 1: GPU reset");
  EXPECT_EQ(gpu_.record().causes.front().cause_class, CauseClass::kReset);
  sample_.recovery_action = 1;
  EXPECT_EQ(Run(1h), std::nullopt);
  EXPECT_EQ(gpu_.record().causes.front().count, 1U) << "seen again is not asked again";
  sample_.recovery_action = 0;
  EXPECT_LE(Run(10min), 30s);
  EXPECT_TRUE(gpu_.healthy());
}

TEST_F(GpuHealthTest, UnknownRecoveryActionsCountToo) {
  gpu_.OnRecoveryAction(99);
  EXPECT_FALSE(gpu_.healthy());
}

TEST_F(GpuHealthTest, ActionNoneIsNoEvidenceWhereNoneWasSetBefore) {
  sample_.recovery_action = 0;
  Look();
  Xid(79, XidClass::kReset);
  gpu_.OnRecoveryAction(0);
  EXPECT_EQ(Run(1h), std::nullopt);
}

TEST_F(GpuHealthTest, LostAndFoundIsNoEvidence) {
  Fail(nvml::kGpuIsLost);
  Look();
  EXPECT_FALSE(gpu_.healthy()) << "at once";
  failure_.reset();
  EXPECT_EQ(Run(1h), std::nullopt);
}

TEST_F(GpuHealthTest, AStillLostGpuIsOneFault) {
  Fail(nvml::kGpuIsLost);
  Look();
  EXPECT_EQ(Run(10min), std::nullopt);
  EXPECT_THAT(gpu_.record().causes, SizeIs(1));
  EXPECT_EQ(gpu_.record().causes.front().count, 1U);
}

TEST_F(GpuHealthTest, AbsentAndBackIsEvidence) {
  Xid(119, XidClass::kReset);
  gpu_.OnAbsent();
  EXPECT_FALSE(gpu_.NextLook()) << "there is nothing to look at";
  clock_.Advance(5min);
  gpu_.OnPresent();
  EXPECT_TRUE(Run(10min));
}

TEST_F(GpuHealthTest, AbsentIsAFaultOfItsOwn) {
  gpu_.OnAbsent();
  EXPECT_FALSE(gpu_.healthy());
  gpu_.OnPresent();
  EXPECT_EQ(Run(10min), 80s);
}

TEST_F(GpuHealthTest, AReloadedModuleIsEvidence) {
  Xid(79, XidClass::kReset);
  gpu_.OnModuleReloaded();
  EXPECT_EQ(Run(10min), 80s);
}

TEST_F(GpuHealthTest, HoldOffDoublesWithEachRelapseAndTheFourthQuarantines) {
  std::vector<Duration> spans;
  for (int i = 0; i < 4; ++i) {
    Xid(61);
    spans.push_back(Run(2h).value_or(0s));
    clock_.Advance(1s);
  }
  EXPECT_THAT(spans, ElementsAre(80s, 140s, 260s, 500s));
  Xid(61);
  EXPECT_TRUE(gpu_.record().quarantined);
  EXPECT_EQ(Run(12h), std::nullopt);
  gpu_.OnModuleReloaded();
  EXPECT_TRUE(Run(2h)) << "a reset ends a quarantine";
  Xid(61);
  EXPECT_FALSE(gpu_.record().quarantined) << "and what was before it is forgotten";
}

TEST_F(GpuHealthTest, HoldOffEndsDoublingAtAnHour) {
  settings_.recovery.hold_off = 40min;
  gpu_.Configure(settings_);
  Xid(61);
  EXPECT_TRUE(Run(2h));
  Xid(61);
  EXPECT_EQ(gpu_.HoldOff(), 1h);
}

TEST_F(GpuHealthTest, RelapsesOlderThanAnHourDoNotDouble) {
  Xid(61);
  ASSERT_TRUE(Run(2h));
  Xid(61);
  EXPECT_EQ(gpu_.HoldOff(), 120s);
  ASSERT_TRUE(Run(2h));
  clock_.Advance(2h);
  Xid(61);
  EXPECT_EQ(gpu_.HoldOff(), 120s) << "the relapse of now alone";
}

TEST_F(GpuHealthTest, RelapsesOfYesterdayDoNotQuarantine) {
  for (int i = 0; i < 6; ++i) {
    Xid(61);
    ASSERT_TRUE(Run(2h));
    clock_.Advance(9h);
  }
  EXPECT_FALSE(gpu_.record().quarantined);
}

TEST_F(GpuHealthTest, ClearedByHandIsHealthyAndForgetsRelapses) {
  for (int i = 0; i < 5; ++i) {
    Xid(61);
    Run(2h);
  }
  ASSERT_TRUE(gpu_.record().quarantined);
  gpu_.Clear();
  EXPECT_TRUE(gpu_.healthy());
  Xid(61);
  EXPECT_EQ(gpu_.HoldOff(), 60s);
}

TEST_F(GpuHealthTest, WhatIsStillWrongComesBackAfterAClear) {
  sample_.recovery_action = 2;
  Look();
  gpu_.Clear();
  EXPECT_TRUE(gpu_.healthy());
  Look();
  EXPECT_FALSE(gpu_.healthy());
}

TEST_F(GpuHealthTest, RecoveryOffLeavesItUnhealthyUntilCleared) {
  settings_.recovery.enabled = false;
  gpu_.Configure(settings_);
  Xid(61);
  EXPECT_FALSE(gpu_.NextLook());
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(10s);
    Look();
  }
  EXPECT_FALSE(gpu_.healthy());
  gpu_.Clear();
  EXPECT_TRUE(gpu_.healthy());
}

TEST_F(GpuHealthTest, ConditionsNeedTheirBadSamplesAndClearAfterThreeProbesWithoutHoldOff) {
  sample_.temperature = 95;
  sample_.temperature_shutdown = 92;
  Look();
  EXPECT_TRUE(gpu_.healthy());
  clock_.Advance(30s);
  Look();
  EXPECT_FALSE(gpu_.healthy());
  sample_.temperature = 89;
  EXPECT_EQ(Run(5min), std::nullopt) << "not yet 5 degrees lower";
  sample_.temperature = 87;
  EXPECT_LE(Run(5min), 30s);
  EXPECT_TRUE(gpu_.healthy());
  EXPECT_FALSE(gpu_.NextLook());
}

TEST_F(GpuHealthTest, AGoodSampleBetweenStartsTheCountAgain) {
  sample_.compute_mode = 2;
  Look();
  sample_.compute_mode = 0;
  Look();
  sample_.compute_mode = 2;
  Look();
  EXPECT_TRUE(gpu_.healthy());
  Look();
  EXPECT_FALSE(gpu_.healthy());
}

TEST_F(GpuHealthTest, FabricIsMissedOnlyWhereItWasCompletedBefore) {
  sample_.fabric = nvml::Fabric{.state = nvml::FabricState::kInProgress};
  for (int i = 0; i < 5; ++i) Look();
  EXPECT_TRUE(gpu_.healthy()) << "a first start without a fabric";
  sample_.fabric->state = nvml::FabricState::kCompleted;
  Look();
  sample_.fabric->state = nvml::FabricState::kInProgress;
  Look();
  Look();
  EXPECT_TRUE(gpu_.healthy());
  Look();
  EXPECT_FALSE(gpu_.healthy()) << "the third";
}

TEST_F(GpuHealthTest, RowRemapFailureIsBadAtOnceAndPendingIsAWarning) {
  sample_.remapped_rows = {.pending = true};
  Look();
  EXPECT_TRUE(gpu_.healthy());
  EXPECT_THAT(gpu_.warnings(), SizeIs(1));
  sample_.remapped_rows->failure = true;
  Look();
  EXPECT_FALSE(gpu_.healthy());
}

TEST_F(GpuHealthTest, AfterAFailedEventWaitOneBadAnswerIsEnough) {
  const Examination bad{.failure =
                            nvml::Failure{.status = nvml::kUnknown, .call = "x", .text = ""}};
  Look({.examination = bad, .expected_uuid = "GPU-a", .checks = {}, .context = {}});
  EXPECT_TRUE(gpu_.healthy());
  Look(
      {.examination = bad, .expected_uuid = "GPU-a", .checks = {}, .context = {}, .at_once = true});
  EXPECT_FALSE(gpu_.healthy());
}

TEST_F(GpuHealthTest, WithPollingOffNothingPolledMarks) {
  sample_.remapped_rows = {.failure = true};
  sample_.recovery_action = 1;
  const Examination examination{.uuid = "GPU-a", .sample = sample_};
  const config::Health::Checks off{.lost = false, .recovery_action = false};
  for (int i = 0; i < 5; ++i) {
    Look({.examination = examination,
          .expected_uuid = "GPU-a",
          .checks = off,
          .context = {},
          .polled = false});
  }
  EXPECT_TRUE(gpu_.healthy());
}

TEST_F(GpuHealthTest, ConditionsWhoseCheckIsTurnedOffEnd) {
  sample_.compute_mode = 2;
  Look();
  Look();
  ASSERT_FALSE(gpu_.healthy());
  settings_.polling.checks.compute_mode = false;
  gpu_.Configure(settings_);
  EXPECT_TRUE(gpu_.healthy());
}

TEST_F(GpuHealthTest, AHangingCallIsAFaultAndIsLeftAlone) {
  gpu_.OnHang();
  EXPECT_FALSE(gpu_.healthy());
  EXPECT_TRUE(gpu_.cautious());
  EXPECT_FALSE(gpu_.NextLook());
  clock_.Advance(5min);
  gpu_.OnHangOver();
  EXPECT_EQ(gpu_.NextLook(), clock_.Now() + 60s) << "first one cheap call, a minute later";
  EXPECT_TRUE(gpu_.cautious());
  clock_.Advance(60s);
  Fail(nvml::kUnknown);
  Look();
  EXPECT_EQ(gpu_.NextLook(), clock_.Now() + 120s);
  clock_.Advance(120s);
  failure_.reset();
  Look();
  EXPECT_FALSE(gpu_.cautious());
  EXPECT_LE(Run(10min), 40s);
}

TEST_F(GpuHealthTest, CautiousBackOffEndsAtTenMinutes) {
  gpu_.OnHang();
  gpu_.OnHangOver();
  Fail(nvml::kUnknown);
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(10min);
    Look();
  }
  EXPECT_EQ(gpu_.NextLook(), clock_.Now() + 10min);
}

TEST_F(GpuHealthTest, GspTimeoutsAreLeftAloneAtFirst) {
  Xid(119, XidClass::kReset);
  EXPECT_TRUE(gpu_.cautious());
  EXPECT_EQ(gpu_.NextLook(), clock_.Now() + 60s);
}

TEST_F(GpuHealthTest, TimesToComeInADamagedFileHoldNobodyForEver) {
  GpuRecord record;
  record.causes = {{.cause_class = CauseClass::kFault, .reason = "XID 61"}};
  record.last_fault = record.updated = MonoTime::max();
  record.relapses = {MonoTime::max(), MonoTime::max()};
  gpu_.Restore(record);
  EXPECT_EQ(gpu_.HoldOff(), 60s);
  EXPECT_TRUE(Run(5min));
}

TEST_F(GpuHealthTest, ARestoredFaultKeepsItsTimeAndItsRules) {
  sample_.pcie_replays = 9;
  Look();
  Xid(62, XidClass::kReset);
  const GpuRecord record = gpu_.record();
  clock_.Advance(5min);
  GpuHealth next(clock_, settings_);
  next.Restore(record);
  EXPECT_FALSE(next.healthy());
  EXPECT_EQ(next.record().causes.front().since, record.causes.front().since);
  gpu_ = std::move(next);
  EXPECT_EQ(Run(10min), std::nullopt);
  sample_.pcie_replays = 0;  // it was reset while nobody looked
  EXPECT_TRUE(Run(10min));
}

TEST_F(GpuHealthTest, AStormOfDifferentXidsStaysSmall) {
  for (std::uint64_t xid = 1000; xid < 20'000; ++xid) Xid(xid);
  EXPECT_LE(gpu_.record().causes.size(), 32U);
}

TEST_F(GpuHealthTest, SameXidOnOtherInstancesAreOtherCauses) {
  Xid(61, XidClass::kFault, {.gpu_instance = 2, .compute_instance = 0});
  Xid(61, XidClass::kFault, {.gpu_instance = 3, .compute_instance = 0});
  Xid(61, XidClass::kFault, {.gpu_instance = 3, .compute_instance = 0});
  ASSERT_THAT(gpu_.record().causes, SizeIs(2));
  EXPECT_EQ(gpu_.record().causes[1].count, 2U);
}

}  // namespace
}  // namespace ndp::health
