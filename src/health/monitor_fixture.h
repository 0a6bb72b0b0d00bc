// Two GPUs and a Monitor over them, with the fake driver: for monitor_test.cc (verdicts and what is
// kept of them) and monitor_driver_test.cc (the driver's answers, waits and absence).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "health/monitor.h"
#include "testing/fake_driver.h"
#include "testing/result_matchers.h"
#include "testing/run_until.h"
#include "testing/temp_dir.h"

namespace ndp::health {

using namespace std::chrono_literals;

inline constexpr const char* kA = "0000:01:00.0";
inline constexpr const char* kB = "0000:02:00.0";

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

}  // namespace ndp::health
