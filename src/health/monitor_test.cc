#include "health/monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "testing/fake_driver.h"
#include "testing/result_matchers.h"
#include "testing/run_until.h"
#include "testing/temp_dir.h"

namespace ndp::health {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kA = "0000:01:00.0";
constexpr const char* kB = "0000:02:00.0";

// Two GPUs, A and B; times of the rules shortened by the settings, as users would.
class MonitorTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = os::EventLoop::Create();
    ASSERT_THAT(loop, IsOk());
    loop_ = std::move(*loop);
    ticks_ = loop_->Every(1ms, [] {});
    dir_.Write("proc/sys/kernel/random/boot_id", "boot-1\n");
    std::filesystem::create_directories(dir_ / "sys/module/nvidia");
    settings_.state_file = dir_ / "state";
    settings_.fences_file = dir_ / "etc/fences.yaml";
    settings_.recovery = {.hold_off = 30ms, .probes = 3, .probe_interval = 5ms};
    settings_.polling.interval = 10ms;
    settings_.grace = 40ms;
    machine_.AddGpu("GPU-a", kA);
    machine_.AddGpu("GPU-b", kB);
    worker_.emplace(*loop_, clock_, nvml::QueryWorker::Options{.watchdog = 60ms, .patience = 5ms},
                    [this](const std::string& key, bool aside) {
                      if (monitor_) monitor_->OnSetAside(key, aside);
                    });
  }
  void TearDown() override {
    machine_.Edit(kA, [](auto& gpu) { gpu.hang = false; });
    machine_.LetTimeGo();
  }

  void Make() {
    Monitor::Deps deps{*loop_, clock_, *worker_, host_, metrics_};
    deps.examine_apart = [this](const std::string& pci, Depth depth) {
      ++looks_apart_;
      const auto session = machine_.Open();
      return Examine(**session, pci, depth);
    };
    monitor_.emplace(
        deps, settings_,
        Monitor::Callbacks{
            .board = [this](auto board) { boards_.push_back(std::move(board)); },
            .refresh = [this](const std::string& why) { refreshes_.push_back(why); },
            .let_go = [this](std::set<std::string> gpus) { let_go_ = std::move(gpus); }},
        Monitor::Timing{.event_slice = event_slice_,
                        .second_action_read = 20ms,
                        .first_poll = 200ms,
                        .first_backoff = 20ms,
                        .longest_backoff = 100ms,
                        .counts_interval = 5ms});
  }
  // As the node's scan would.
  void Scan() {
    auto node = std::make_shared<inventory::Inventory>();
    const auto count = driver_->DeviceCount();
    ASSERT_TRUE(count);
    for (unsigned i = 0; i < *count; ++i) {
      if (auto gpu = driver_->ReadGpu(i)) {
        inventory::Gpu& added = node->gpus.emplace_back();
        added.nvml = *gpu;
        for (const nvml::MigDevice& mig : gpu->mig_devices) added.mig.push_back({.nvml = mig});
      } else {
        node->broken.push_back({.index = i, .reason = gpu.error().Message()});
      }
    }
    monitor_->OnInventory(node, driver_);
  }
  void Start() {
    Make();
    OpenDriver();
    Scan();
    ASSERT_TRUE(Until([&] { return machine_.registered(kB) || !watches_; }));
    const int looks = machine_.calls("Sample");
    ASSERT_TRUE(Until([&] { return machine_.calls("Sample") >= looks; }));
  }
  void OpenDriver() {
    auto driver = machine_.Open();
    ASSERT_THAT(driver, IsOk());
    driver_ = *std::move(driver);
  }
  bool Until(const std::function<bool()>& condition) { return RunUntil(*loop_, condition, 20s); }
  bool Healthy(const std::string& uuid) const { return monitor_->board()->Of(uuid).healthy; }
  const std::string& Reason(const std::string& uuid) const {
    return monitor_->board()->Of(uuid).reason;
  }
  bool UntilHealthy(const std::string& uuid) {
    return Until([&] { return Healthy(uuid); });
  }
  bool UntilUnhealthy(const std::string& uuid) {
    return Until([&] { return !Healthy(uuid); });
  }
  // For "and it stays so".
  void Pass(Duration span) {
    bool over = false;
    const auto timer = loop_->After(span, [&] { over = true; });
    ASSERT_TRUE(Until([&] { return over; }));
  }

  TempDir dir_;
  os::HostFs host_{dir_.path()};
  SystemClock clock_;
  metrics::Registry metrics_;
  config::Health settings_;
  FakeMachine machine_;
  std::unique_ptr<os::EventLoop> loop_;
  os::EventLoop::Handle ticks_;
  bool watches_ = true;
  std::chrono::milliseconds event_slice_ = 10ms;
  std::vector<std::shared_ptr<const HealthBoard>> boards_;
  std::vector<std::string> refreshes_;
  std::set<std::string> let_go_;
  std::atomic<int> looks_apart_ = 0;
  std::shared_ptr<nvml::Driver> driver_;
  std::optional<nvml::QueryWorker> worker_;
  std::optional<Monitor> monitor_;
};

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

TEST_F(MonitorTest, ClearingWhatIsNotThereSaysSo) {
  Start();
  EXPECT_THAT(monitor_->Clear("7"), IsErrorThat(Code::kNotFound, HasSubstr("no GPU '7'")));
  EXPECT_THAT(monitor_->Clear("all"), IsOk());
}

}  // namespace
}  // namespace ndp::health
