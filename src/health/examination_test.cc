#include "health/examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::health {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Checks = config::Health::Checks;

Judgement JudgeSample(const nvml::HealthSample& sample, const CheckContext& context = {},
                      const Checks& checks = {}) {
  return Judge({.uuid = "GPU-a", .sample = sample}, checks, context);
}

std::vector<Condition> Conditions(const Judgement& judgement) {
  std::vector<Condition> result;
  for (const Finding& finding : judgement.bad) result.push_back(finding.condition);
  return result;
}

TEST(JudgeTest, WhatTheDriverDoesNotSupportPasses) {
  const Judgement judgement = JudgeSample({}, {.shared = true, .fabric_expected = true});
  EXPECT_THAT(judgement.bad, IsEmpty());
  EXPECT_THAT(judgement.warnings, IsEmpty());
  EXPECT_FALSE(judgement.lost);
}

TEST(JudgeTest, RowRemapFailureIsBadAndPendingIsAWarning) {
  const nvml::HealthSample failed{.remapped_rows = {{.pending = true, .failure = true}}};
  EXPECT_THAT(Conditions(JudgeSample(failed)), ElementsAre(Condition::kRowRemap));
  const nvml::HealthSample pending{.remapped_rows = {{.pending = true}}};
  EXPECT_THAT(JudgeSample(pending).bad, IsEmpty());
  EXPECT_THAT(JudgeSample(pending).warnings, ElementsAre(HasSubstr("row remapping is pending")));
  EXPECT_THAT(JudgeSample(failed, {}, {.row_remap = false}).bad, IsEmpty());
}

TEST(JudgeTest, PendingPageRetirementIsBadOnlyByOptionAndAfterADoubleBitError) {
  nvml::HealthSample sample{.retired_pages_pending = true, .volatile_uncorrected_ecc = 1};
  EXPECT_THAT(JudgeSample(sample).bad, IsEmpty());
  EXPECT_THAT(JudgeSample(sample).warnings, SizeIs(1));
  const Checks on{.retired_pages = true};
  EXPECT_THAT(Conditions(JudgeSample(sample, {}, on)), ElementsAre(Condition::kRetiredPages));
  sample.volatile_uncorrected_ecc = 0;
  EXPECT_THAT(JudgeSample(sample, {}, on).bad, IsEmpty());
}

TEST(JudgeTest, TemperatureCountsAgainstAnAbsoluteThresholdOnly) {
  const auto bad = [](unsigned temperature, unsigned threshold) {
    return !JudgeSample({.temperature = temperature, .temperature_shutdown = threshold})
                .bad.empty();
  };
  EXPECT_TRUE(bad(92, 92));
  EXPECT_FALSE(bad(91, 92));
  EXPECT_FALSE(bad(99, 0));
  EXPECT_FALSE(bad(99, 60)) << "a margin, not a threshold";
  EXPECT_TRUE(bad(99, 61));
  EXPECT_THAT(JudgeSample({.temperature = 99}).bad, IsEmpty());
}

TEST(JudgeTest, HighTemperatureEndsFiveDegreesLower) {
  const auto bad = [](unsigned temperature) {
    return !JudgeSample({.temperature = temperature, .temperature_shutdown = 92},
                        {.temperature_high = true})
                .bad.empty();
  };
  EXPECT_TRUE(bad(91));
  EXPECT_TRUE(bad(88));
  EXPECT_FALSE(bad(87));
}

TEST(JudgeTest, FabricMustBeCompletedWhereOneIsExpected) {
  const auto with = [](nvml::FabricState state, bool expected) {
    return Conditions(
        JudgeSample({.fabric = nvml::Fabric{.state = state}}, {.fabric_expected = expected}));
  };
  EXPECT_THAT(with(nvml::FabricState::kInProgress, true), ElementsAre(Condition::kFabric));
  EXPECT_THAT(with(nvml::FabricState::kNotStarted, true), ElementsAre(Condition::kFabric));
  EXPECT_THAT(with(nvml::FabricState::kInProgress, false), IsEmpty());
  EXPECT_THAT(with(nvml::FabricState::kCompleted, true), IsEmpty());
  EXPECT_THAT(with(nvml::FabricState::kNotSupported, true), IsEmpty());
}

TEST(JudgeTest, ExclusiveComputeModeIsWrongOnlyOnASharedGpuWithoutOurMps) {
  const auto with = [](int mode, bool shared, bool mps) {
    return Conditions(JudgeSample({.compute_mode = mode}, {.shared = shared, .mps = mps}));
  };
  EXPECT_THAT(with(3, true, false), ElementsAre(Condition::kComputeMode));
  EXPECT_THAT(with(3, true, true), IsEmpty());
  EXPECT_THAT(with(3, false, false), IsEmpty());
  EXPECT_THAT(with(0, true, false), IsEmpty());
  EXPECT_THAT(with(2, false, false), ElementsAre(Condition::kComputeMode)) << "prohibited";
}

TEST(JudgeTest, LostAndResetRequiredAreClassResetHoweverTheyShow) {
  for (int status : {nvml::kGpuIsLost, nvml::kResetRequired}) {
    const nvml::Failure failure{.status = status, .call = "nvmlX", .text = "bad"};
    EXPECT_TRUE(Judge({.failure = failure}, {}, {}).lost) << status;
    const Judgement beside = JudgeSample({.failures = {failure}});
    EXPECT_TRUE(beside.lost) << status;
    EXPECT_THAT(beside.bad, IsEmpty());
  }
}

TEST(JudgeTest, AnotherErrorIsACondition) {
  const nvml::Failure unknown{.status = nvml::kUnknown, .call = "nvmlX", .text = "unknown"};
  EXPECT_THAT(Conditions(Judge({.failure = unknown}, {}, {})),
              ElementsAre(Condition::kUnresponsive));
}

TEST(JudgeTest, ADriverThatIsGoneSaysNothingAboutTheGpu) {
  const nvml::Failure gone{.status = nvml::kUninitialized, .call = "nvmlX", .text = "no session"};
  const Judgement judgement = Judge({.failure = gone}, {}, {});
  EXPECT_THAT(judgement.bad, IsEmpty());
  EXPECT_FALSE(judgement.lost);
}

TEST(ConditionTest, NeedsTheSamplesThatTheDocumentationSays) {
  EXPECT_EQ(BadSamplesNeeded(Condition::kRowRemap), 1);
  EXPECT_EQ(BadSamplesNeeded(Condition::kTemperature), 2);
  EXPECT_EQ(BadSamplesNeeded(Condition::kUnresponsive), 2);
  EXPECT_EQ(BadSamplesNeeded(Condition::kComputeMode), 2);
  EXPECT_EQ(BadSamplesNeeded(Condition::kRetiredPages), 2);
  EXPECT_EQ(BadSamplesNeeded(Condition::kFabric), 3);
}

TEST(RecoveryActionTest, EveryValueHasAWordAndANextStep) {
  for (int action = 1; action <= 8; ++action) {
    EXPECT_THAT(RecoveryActionText(action), HasSubstr(std::to_string(action)));
    EXPECT_FALSE(RecoveryActionNextStep(action).empty());
  }
  EXPECT_EQ(RecoveryActionText(1), "1: GPU reset");
  EXPECT_EQ(RecoveryActionText(42), "42: unknown to this program");
}

}  // namespace
}  // namespace ndp::health
