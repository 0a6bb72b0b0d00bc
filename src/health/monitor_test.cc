#include "health/monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "health/monitor_fixture.h"

namespace ndp::health {
namespace {
using ::testing::HasSubstr;

TEST_F(MonitorTest, AFaultMarksItsGpuAndGoesAway) {
  Start();
  machine_.RaiseXid(kA, 61);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_EQ(Reason("GPU-a"), "XID 61");
  EXPECT_TRUE(Healthy("GPU-b"));
  EXPECT_TRUE(UntilHealthy("GPU-a"));
}

TEST_F(MonitorTest, HarmlessXidsAreCountedAndChangeNothing) {
  Start();
  machine_.RaiseXid(kA, 31);
  machine_.RaiseXid(kA, 63);
  EXPECT_TRUE(Until([&] { return metrics_.Text().find(R"(xid="63")") != std::string::npos; }));
  Pass(50ms);
  EXPECT_TRUE(Healthy("GPU-a"));
}

TEST_F(MonitorTest, MigFaultsReachTheInstanceThatTheyName) {
  machine_.Edit(kA, [](auto& gpu) {
    gpu.gpu.mig_mode = nvml::MigMode{.current = true, .pending = true};
    gpu.gpu.mig_devices = {{.uuid = "MIG-1", .gpu_instance = 1},
                           {.uuid = "MIG-2", .gpu_instance = 2}};
  });
  Start();
  machine_.RaiseXid(kA, 61, 2, 0);
  EXPECT_TRUE(UntilUnhealthy("MIG-2"));
  EXPECT_TRUE(Healthy("MIG-1"));
  machine_.RaiseXid(kA, 95, 2, 0);
  EXPECT_TRUE(UntilUnhealthy("MIG-1"));
}

TEST_F(MonitorTest, RecoveryActionDecidesForXid154) {
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.recovery_action = 0; });
  settings_.polling.enabled = false;
  Start();
  machine_.RaiseXid(kA, 154);
  EXPECT_TRUE(Until([&] { return machine_.calls("RecoveryAction") >= 2; })) << "at once and later";
  EXPECT_TRUE(Healthy("GPU-a"));
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.recovery_action = 1; });
  machine_.RaiseXid(kA, 154);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_EQ(monitor_->board()->Of("GPU-a").cause_class, "reset");
  Pass(100ms);
  EXPECT_FALSE(Healthy("GPU-a"));
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.recovery_action = 0; });
  EXPECT_TRUE(UntilHealthy("GPU-a"));
}

TEST_F(MonitorTest, ResetClassComesBackByItsCounters) {
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.total_energy_mj = 1000; });
  Start();
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  Pass(120ms);
  EXPECT_FALSE(Healthy("GPU-a"));
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.total_energy_mj = 1; });
  EXPECT_TRUE(UntilHealthy("GPU-a"));
}

TEST_F(MonitorTest, AbsentAndBackIsEvidence) {
  Start();
  machine_.RemoveGpu(kB);
  Scan();
  EXPECT_FALSE(Healthy("GPU-b"));
  EXPECT_THAT(Reason("GPU-b"), HasSubstr("does not list"));
  machine_.AddGpu("GPU-b", kB);
  Scan();
  EXPECT_TRUE(UntilHealthy("GPU-b"));
}

TEST_F(MonitorTest, VerdictsOutliveTheProgramButNotABoot) {
  Start();
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  const WallTime since = monitor_->board()->Of("GPU-a").since;
  Make();
  Scan();
  EXPECT_FALSE(Healthy("GPU-a"));
  EXPECT_EQ(monitor_->board()->Of("GPU-a").since, since);
  dir_.Write("proc/sys/kernel/random/boot_id", "boot-2\n");
  Make();
  Scan();
  EXPECT_TRUE(Healthy("GPU-a"));
}

TEST_F(MonitorTest, AReloadedModuleIsEvidenceAlsoOverARestart) {
  Start();
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  std::filesystem::create_directories(dir_ / "sys/module/other");
  std::filesystem::remove(dir_ / "sys/module/nvidia");
  std::filesystem::rename(dir_ / "sys/module/other", dir_ / "sys/module/nvidia");
  Make();
  Scan();
  EXPECT_TRUE(UntilHealthy("GPU-a"));
}

TEST_F(MonitorTest, AStateFileThatCannotBeWrittenIsOnlyAWarning) {
  settings_.state_file = "/nonexistent-folder/state";
  Start();
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
}

TEST_F(MonitorTest, FencesApplyBothWays) {
  Start();
  dir_.Write("etc/fences.yaml", "[{index: 1, reason: RMA 7}]");
  EXPECT_TRUE(UntilUnhealthy("GPU-b"));
  EXPECT_EQ(Reason("GPU-b"), "fenced: RMA 7");
  machine_.RemoveGpu(kA);
  Scan();
  EXPECT_EQ(Reason("GPU-b"), "fenced: RMA 7") << "still the same GPU, now under index 0";
  std::filesystem::remove(dir_ / "etc/fences.yaml");
  EXPECT_TRUE(UntilHealthy("GPU-b"));
}

TEST_F(MonitorTest, AFencedIndexIsTheSameGpuAfterARestart) {
  dir_.Write("etc/fences.yaml", "[{index: 1, reason: RMA 7}]");
  Start();
  EXPECT_TRUE(UntilUnhealthy("GPU-b"));
  machine_.RemoveGpu(kA);
  Make();
  Scan();
  EXPECT_TRUE(Until([&] { return Reason("GPU-b") == "fenced: RMA 7"; }));
}

TEST_F(MonitorTest, AnExcludedGpuHasNoVerdictAndIsNotMissed) {
  Make();
  monitor_->SetExcluded({"GPU-b"});
  OpenDriver();
  Scan();
  ASSERT_TRUE(Until([&] { return machine_.registered(kA); }));
  EXPECT_FALSE(machine_.registered(kB));
  EXPECT_FALSE(monitor_->board()->devices.contains("GPU-b"));
  machine_.Edit(kB, [](auto& gpu) { gpu.sample.remapped_rows = {.failure = true}; });
  settings_.polling.interval = 1h;
  monitor_->Configure(settings_);
  monitor_->SetExcluded({});
  EXPECT_TRUE(Until([&] { return machine_.registered(kB); })) << "watched from now on";
  EXPECT_TRUE(UntilUnhealthy("GPU-b")) << "and looked at, not waiting for the next poll";
  EXPECT_THAT(Reason("GPU-b"), HasSubstr("row remapping"));
}

TEST_F(MonitorTest, ExcludingAndIncludingIsNoFault) {
  Start();
  monitor_->SetExcluded({"GPU-b"});
  Scan();
  EXPECT_TRUE(Until([&] { return !monitor_->board()->devices.contains("GPU-b"); }));
  monitor_->SetExcluded({});
  Scan();
  EXPECT_TRUE(Until([&] { return monitor_->board()->devices.contains("GPU-b"); }));
  EXPECT_TRUE(Healthy("GPU-b"));
  for (const auto& board : boards_) EXPECT_TRUE(board->Of("GPU-b").healthy);
}

TEST_F(MonitorTest, TheClearFileClearsWhatWasBefore) {
  Start();
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  Pass(20ms);
  dir_.Write("etc/clear", "0\n");
  EXPECT_TRUE(UntilHealthy("GPU-a"));
  Pass(20ms);
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  Make();
  Scan();
  Pass(20ms);
  EXPECT_FALSE(Healthy("GPU-a")) << "the old file does not clear what came after it";
}

TEST_F(MonitorTest, ExclusiveComputeModeIsWrongOnASharedGpu) {
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.compute_mode = 3; });
  machine_.Edit(kB, [](auto& gpu) { gpu.sample.compute_mode = 3; });
  Make();
  monitor_->SetUses({{"GPU-a", {.shared = true}}, {"GPU-b", {.shared = true, .mps = true}}});
  OpenDriver();
  Scan();
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_TRUE(Healthy("GPU-b"));
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.compute_mode = 0; });
  EXPECT_TRUE(UntilHealthy("GPU-a"));
}

TEST_F(MonitorTest, ClearingWhatIsNotThereSaysSo) {
  Start();
  EXPECT_THAT(monitor_->Clear("7"), IsErrorThat(Code::kNotFound, HasSubstr("no GPU '7'")));
  EXPECT_THAT(monitor_->Clear("all"), IsOk());
}

}  // namespace
}  // namespace ndp::health
