// How the Monitor gets on with a driver: waits that fail, calls that hang, one that is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "health/monitor_fixture.h"

namespace ndp::health {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// By the machine's own time, so exactly, and however slow the computer is that runs the test.
TEST_F(MonitorTest, ALostGpuCausesFewerThanFiveWaitsASecond) {
  machine_.HoldTime();
  event_slice_ = Monitor::Timing().event_slice;  // as shipped
  Start();
  machine_.Edit(kA, [](auto& gpu) { gpu.status = nvml::kGpuIsLost; });
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  const auto settled = [&] {
    return machine_.registered(kB) && !machine_.registered(kA) && machine_.waiting() == 1;
  };
  ASSERT_TRUE(Until(settled));
  const int before = machine_.calls("Wait");
  for (int second = 1; second <= 20; ++second) {
    const int waits = machine_.calls("Wait");
    machine_.PassTime(1s);
    ASSERT_TRUE(Until([&] {
      return machine_.calls("Wait") == before + second / 5 && machine_.waiting() == 1;
    })) << machine_.calls("Wait") - before
        << " waits in " << second << " s";
    EXPECT_LT(machine_.calls("Wait") - waits, 5);
  }
  EXPECT_EQ(machine_.calls("Wait") - before, 4) << "one a slice of 5 s, and no more";
}

TEST_F(MonitorTest, AGpuThatNeedsAResetIsLetGoUntilItIsHealthy) {
  settings_.recovery.release_faulty_gpu = true;
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.total_energy_mj = 1000; });
  Start();
  machine_.RaiseXid(kA, 61);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_TRUE(UntilHealthy("GPU-a"));
  EXPECT_THAT(let_go_, IsEmpty()) << "a fault needs no reset";
  EXPECT_EQ(looks_apart_, 0);
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(Until([&] { return let_go_ == std::set<std::string>{kA}; }));
  EXPECT_TRUE(Until([&] { return machine_.registered(kB) && !machine_.registered(kA); }));
  const int looks = looks_apart_;
  EXPECT_TRUE(Until([&] { return looks_apart_ > looks + 3; }))
      << "looked at in sessions of its own";
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.total_energy_mj = 1; });
  EXPECT_TRUE(UntilHealthy("GPU-a"));
  EXPECT_TRUE(Until([&] { return let_go_.empty() && machine_.registered(kA); })) << "taken back";
}

TEST_F(MonitorTest, ALostGpuHarmsNoOther) {
  Start();
  machine_.Edit(kA, [](auto& gpu) { gpu.status = nvml::kGpuIsLost; });
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_TRUE(Until([&] { return machine_.registered(kB) && !machine_.registered(kA); }))
      << "the set is rebuilt without it";
  EXPECT_TRUE(Healthy("GPU-b"));
  machine_.RaiseXid(kB, 61);
  EXPECT_TRUE(UntilUnhealthy("GPU-b")) << "and still hears of the others";
  machine_.Edit(kA, [](auto& gpu) { gpu.status = nvml::kSuccess; });
  EXPECT_TRUE(Until([&] { return machine_.registered(kA); })) << "watched again";
  Pass(100ms);
  EXPECT_FALSE(Healthy("GPU-a")) << "lost and found is no evidence of a reset";
  const auto cleared = monitor_->Clear("0");
  ASSERT_THAT(cleared, IsOk());
  EXPECT_THAT(*cleared, ElementsAre("GPU-a"));
  EXPECT_TRUE(Healthy("GPU-a"));
}

TEST_F(MonitorTest, ThePollBeforeTheFirstListFindsWhatIsWrong) {
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.remapped_rows = {.failure = true}; });
  machine_.Edit(kB, [](auto& gpu) { gpu.sample.remapped_rows = {.pending = true}; });
  settings_.polling.interval = 1h;
  Make();
  OpenDriver();
  Scan();
  bool done = false;
  monitor_->FirstPoll([&] { done = true; });
  EXPECT_FALSE(done);
  EXPECT_TRUE(Until([&] { return done; }));
  EXPECT_FALSE(Healthy("GPU-a"));
  EXPECT_TRUE(Healthy("GPU-b"));
  EXPECT_THAT(monitor_->board()->Of("GPU-b").warnings, SizeIs(1));
}

TEST_F(MonitorTest, AHangingGpuHoldsTheFirstListOnlySoLong) {
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.remapped_rows = {.failure = true}; });
  Make();
  OpenDriver();
  Scan();
  machine_.Edit(kA, [](auto& gpu) { gpu.hang = true; });
  bool done = false;
  monitor_->FirstPoll([&] { done = true; });
  EXPECT_TRUE(Until([&] { return done; }));
}

TEST_F(MonitorTest, AHangingCallCostsItsGpuAlone) {
  Start();
  machine_.Edit(kA, [](auto& gpu) { gpu.hang = true; });
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_EQ(monitor_->board()->Of("GPU-a").cause_class, "hang");
  const int looks = machine_.calls("Sample");
  EXPECT_TRUE(Until([&] { return machine_.calls("Sample") > looks + 3; })) << "B is polled on";
  EXPECT_TRUE(Healthy("GPU-b"));
  machine_.Edit(kA, [](auto& gpu) { gpu.hang = false; });
  EXPECT_TRUE(UntilHealthy("GPU-a"));
}

TEST_F(MonitorTest, ADriverThatIsGoneIsToldAfterTheGracePeriodAndForgivenWhenBack) {
  Start();
  machine_.SetSessionStatus(nvml::kUninitialized);
  EXPECT_TRUE(Until([&] { return !refreshes_.empty(); })) << "the node is asked for a new session";
  EXPECT_TRUE(Healthy("GPU-a"));
  EXPECT_FALSE(monitor_->board()->driver.available);
  monitor_->OnDriverFailed("nvmlInit fails");
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_FALSE(Healthy("GPU-b"));
  EXPECT_EQ(monitor_->board()->Of("GPU-b").cause_class, "driver");
  driver_.reset();
  EXPECT_TRUE(Until([&] { return machine_.open_sessions() == 0; })) << "nothing holds it open";
  machine_.SetSessionStatus(nvml::kSuccess);
  OpenDriver();
  Scan();
  EXPECT_TRUE(Healthy("GPU-a"));
  EXPECT_TRUE(monitor_->board()->driver.available);
}

TEST_F(MonitorTest, EveryGpuAnsweringWithAnErrorIsTroubleOfTheDriver) {
  Start();
  for (const char* pci : {kA, kB}) {
    machine_.Edit(pci, [](auto& gpu) { gpu.status = nvml::kNoPermission; });
  }
  EXPECT_TRUE(Until([&] { return !monitor_->board()->driver.available; }));
  EXPECT_THAT(monitor_->board()->driver.reason, HasSubstr("no GPU answers"));
  EXPECT_TRUE(Until([&] { return monitor_->board()->driver.grace_over; }));
}

TEST_F(MonitorTest, LetGoDropsTheDriverAndKeepsTheVerdicts) {
  Start();
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  monitor_->LetGo();
  driver_.reset();
  EXPECT_TRUE(Until([&] { return machine_.open_sessions() == 0; }));
  EXPECT_FALSE(Healthy("GPU-a"));
  EXPECT_TRUE(Healthy("GPU-b"));
  EXPECT_TRUE(monitor_->board()->driver.available);
}

TEST_F(MonitorTest, GpusThatCannotBeWatchedAreHealthyAndPolled) {
  machine_.Edit(kA, [](auto& gpu) { gpu.register_status = nvml::kNotSupported; });
  Start();
  Pass(30ms);
  EXPECT_TRUE(Healthy("GPU-a"));
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.remapped_rows = {.failure = true}; });
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
}

TEST_F(MonitorTest, DisablingAllWatchesAndPollsNothing) {
  settings_.xids.disabled.all = true;
  settings_.polling.enabled = false;
  watches_ = false;
  machine_.Edit(kA, [](auto& gpu) { gpu.sample.remapped_rows = {.failure = true}; });
  Start();
  machine_.RaiseXid(kA, 79);
  Pass(50ms);
  EXPECT_TRUE(Healthy("GPU-a"));
  EXPECT_EQ(machine_.calls("Wait"), 0);
  EXPECT_EQ(machine_.calls("Sample"), 0);
}

TEST_F(MonitorTest, EnablingOneXidWatchesThatOneAlone) {
  settings_.xids.disabled.all = true;
  settings_.xids.enabled.xids = {79};
  settings_.polling.enabled = false;
  Start();
  machine_.RaiseXid(kB, 48);
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_TRUE(Healthy("GPU-b"));
}

TEST_F(MonitorTest, AStormIsOneVerdictAndFewBoards) {
  Start();
  const std::size_t before = boards_.size();
  for (int i = 0; i < 10'000; ++i) machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(UntilUnhealthy("GPU-a"));
  EXPECT_TRUE(Until([&] { return monitor_->board()->Of("GPU-a").count == 10'000; }));
  std::size_t news = 0;
  for (std::size_t i = std::max<std::size_t>(before, 1); i < boards_.size(); ++i) {
    news += boards_[i]->SameVerdicts(*boards_[i - 1]) ? 0U : 1U;
  }
  EXPECT_EQ(news, 1U);
}

}  // namespace
}  // namespace ndp::health
