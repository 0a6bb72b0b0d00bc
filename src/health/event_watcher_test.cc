#include "health/event_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_driver.h"
#include "testing/result_matchers.h"
#include "testing/run_until.h"

namespace ndp::health {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kA = "0000:01:00.0";
constexpr const char* kB = "0000:02:00.0";

class EventWatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = os::EventLoop::Create();
    ASSERT_THAT(loop, IsOk());
    loop_ = std::move(*loop);
    machine_.AddGpu("GPU-a", kA);
    machine_.AddGpu("GPU-b", kB);
    watcher_.emplace(*loop_, clock_,
                     EventWatcher::Callbacks{
                         .events =
                             [this](const std::vector<EventCount>& events, std::uint64_t) {
                               for (const EventCount& e : events) xids_.push_back(e.event.data);
                             },
                         .registered =
                             [this](const auto& missing) {
                               ++registered_;
                               missing_ = missing;
                             },
                         .failed = [this](const nvml::Failure& f) { failed_.push_back(f.status); }},
                     10ms);
  }
  void Start(std::vector<std::string> gpus) {
    auto driver = machine_.Open();
    ASSERT_THAT(driver, IsOk());
    const int before = registered_;
    watcher_->Start(*std::move(driver), std::move(gpus), nvml::kEventXid);
    ASSERT_TRUE(Until([&] { return registered_ > before; }));
  }
  bool Until(const std::function<bool()>& condition) { return RunUntil(*loop_, condition); }

  SystemClock clock_;
  FakeMachine machine_;
  std::unique_ptr<os::EventLoop> loop_;
  std::vector<std::uint64_t> xids_;
  std::vector<int> failed_;
  int registered_ = 0;
  std::map<std::string, nvml::Failure> missing_;
  std::optional<EventWatcher> watcher_;
};

TEST_F(EventWatcherTest, BringsEventsToTheLoop) {
  Start({kA, kB});
  EXPECT_THAT(missing_, IsEmpty());
  machine_.RaiseXid(kA, 79);
  machine_.RaiseXid(kB, 31);
  EXPECT_TRUE(Until([&] { return xids_.size() == 2; }));
  EXPECT_THAT(xids_, ElementsAre(79, 31));
}

// A session that is refreshed closes when the slice ends; a GPU may fail in that time.
TEST_F(EventWatcherTest, WhatHappensUntilAStoppedSetIsLeftIsHeard) {
  Start({kA, kB});
  for (const std::uint64_t xid : {79, 48, 31}) machine_.RaiseXid(kA, xid);
  watcher_->Stop();
  EXPECT_FALSE(watcher_->watching());
  EXPECT_TRUE(Until([&] { return xids_.size() == 3; }));
  EXPECT_THAT(xids_, ElementsAre(79, 48, 31));
  EXPECT_TRUE(Until([&] { return machine_.open_sessions() == 0; }));
  EXPECT_THAT(failed_, IsEmpty());
}

TEST_F(EventWatcherTest, SaysWhichGpusCannotBeWatched) {
  machine_.Edit(kB, [](auto& gpu) { gpu.register_status = nvml::kNotSupported; });
  Start({kA, kB});
  ASSERT_THAT(missing_, SizeIs(1));
  EXPECT_TRUE(missing_.at(kB).unsupported());
  machine_.RaiseXid(kA, 79);
  EXPECT_TRUE(Until([&] { return xids_.size() == 1; }));
}

TEST_F(EventWatcherTest, WithNothingToWatchNobodyWaits) {
  machine_.Edit(kA, [](auto& gpu) { gpu.register_status = nvml::kNotSupported; });
  Start({kA});
  EXPECT_TRUE(Until([&] { return true; }));
  EXPECT_EQ(machine_.calls("Wait"), 0);
}

TEST_F(EventWatcherTest, AFailedWaitEndsItInsteadOfSpinning) {
  Start({kA, kB});
  machine_.Edit(kA, [](auto& gpu) { gpu.status = nvml::kGpuIsLost; });
  EXPECT_TRUE(Until([&] { return !failed_.empty(); }));
  EXPECT_THAT(failed_, ElementsAre(nvml::kGpuIsLost));
  EXPECT_FALSE(watcher_->watching());
  const int waits = machine_.calls("Wait");
  bool later = false;
  const auto timer = loop_->After(50ms, [&] { later = true; });
  EXPECT_TRUE(Until([&] { return later; }));
  EXPECT_EQ(machine_.calls("Wait"), waits);
  EXPECT_EQ(machine_.open_sessions(), 0);
}

TEST_F(EventWatcherTest, ASetThatCannotBeMadeIsAFailure) {
  auto driver = machine_.Open();
  ASSERT_THAT(driver, IsOk());
  machine_.SetSessionStatus(nvml::kUninitialized);
  watcher_->Start(*std::move(driver), {kA}, nvml::kEventXid);
  EXPECT_TRUE(Until([&] { return !failed_.empty(); }));
  EXPECT_THAT(failed_, ElementsAre(nvml::kUninitialized));
}

TEST_F(EventWatcherTest, StoppingLetsGoOfTheDriverWithinASlice) {
  Start({kA});
  EXPECT_EQ(machine_.open_sessions(), 1);
  watcher_->Stop();
  const auto poll = loop_->Every(1ms, [] {});
  EXPECT_TRUE(Until([&] { return machine_.open_sessions() == 0; }));
  EXPECT_EQ(machine_.open_event_sets(), 0);
}

TEST_F(EventWatcherTest, NobodyListensForOneThatIsGone) {
  Start({kA});
  watcher_.reset();
  machine_.RaiseXid(kA, 79);
  const auto poll = loop_->Every(1ms, [] {});
  EXPECT_TRUE(Until([&] { return machine_.open_sessions() == 0; }));
  EXPECT_THAT(xids_, IsEmpty());
}

TEST_F(EventWatcherTest, ANewSetTakesOverWithoutAGap) {
  Start({kA});
  Start({kA, kB});
  machine_.RaiseXid(kB, 48);
  EXPECT_TRUE(Until([&] { return !xids_.empty(); }));
  const auto poll = loop_->Every(1ms, [] {});
  EXPECT_TRUE(Until([&] { return machine_.open_event_sets() == 1; }));
  EXPECT_THAT(failed_, IsEmpty());
}

}  // namespace
}  // namespace ndp::health
