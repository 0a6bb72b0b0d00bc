#include "os/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "os/process.h"
#include "os/unique_fd.h"
#include "testing/run_until.h"

namespace ndp::os {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::ElementsAre;

class EventLoopTest : public testing::Test {
 protected:
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
};

TEST_F(EventLoopTest, PostedTasksRunInOrderFromAnyThread) {
  std::vector<int> order;
  std::thread([&, post = loop_->poster()] {
    for (int i = 0; i < 3; ++i) post.Post([&order, i] { order.push_back(i); });
  }).join();
  loop_->Stop();
  loop_->Run();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST_F(EventLoopTest, PostWakesAWaitingLoop) {
  std::thread poster;
  loop_->Post([&, post = loop_->poster()] {
    poster = std::thread([this, post] { post.Post([this] { loop_->Stop(); }); });
  });
  loop_->Run();
  poster.join();
}

TEST_F(EventLoopTest, APosterOutlivesTheLoopAndDropsItsTasks) {
  const EventLoop::Poster post = loop_->poster();
  auto token = std::make_shared<int>(1);
  post.Post([token] {});
  loop_.reset();
  post.Post([token] { FAIL(); });
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(EventLoopTest, TimersFireInOrderOfTheirDelay) {
  std::vector<int> order;
  auto late = loop_->After(milliseconds(3), [&] {
    order.push_back(3);
    loop_->Stop();
  });
  auto early = loop_->After(milliseconds(1), [&] { order.push_back(1); });
  auto cancelled = loop_->After(milliseconds(2), [&] { order.push_back(2); });
  cancelled.Cancel();
  loop_->Run();
  EXPECT_THAT(order, ElementsAre(1, 3));
}

TEST_F(EventLoopTest, ATimerNeverFiresEarly) {
  const SystemClock clock;
  const MonoTime begin = clock.Now();
  bool fired = false;
  auto timer = loop_->After(std::chrono::microseconds(1500), [&] { fired = true; });
  ASSERT_TRUE(RunUntil(*loop_, [&] { return fired; }));
  EXPECT_GE(clock.Now() - begin, std::chrono::microseconds(1500));
}

TEST_F(EventLoopTest, ACallbackMayDestroyItsOwnHandle) {
  int count = 0;
  EventLoop::Handle every;
  every = loop_->Every(milliseconds(1), [&, token = std::make_unique<int>(7).release()] {
    every.Cancel();
    count += *token;  // what it captured is still there
    delete token;
  });
  auto end = loop_->After(milliseconds(5), [&] { loop_->Stop(); });
  loop_->Run();
  EXPECT_EQ(count, 7);
}

TEST_F(EventLoopTest, ATimerMaySetItselfAnew) {
  int count = 0;
  EventLoop::Handle timer;
  std::function<void()> again = [&] {
    if (++count < 3) timer = loop_->After(milliseconds(1), again);
  };
  timer = loop_->After(milliseconds(1), again);
  EXPECT_TRUE(RunUntil(*loop_, [&] { return count == 3; }));
}

TEST_F(EventLoopTest, AHandleMayGoAfterTheLoop) {
  auto handle = loop_->After(hours(1), [] { FAIL(); });
  loop_.reset();
  EXPECT_TRUE(handle);
  handle.Cancel();
  EXPECT_FALSE(handle);
}

TEST_F(EventLoopTest, WatchReportsAReadableDescriptorUntilItIsRead) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  std::string got;
  auto watch = loop_->Watch(reader.get(), EventLoop::Ready::kRead, [&] {
    char byte = 0;
    ASSERT_EQ(read(reader.get(), &byte, 1), 1);
    got += byte;
  });
  ASSERT_EQ(write(writer.get(), "ab", 2), 2);
  EXPECT_TRUE(RunUntil(*loop_, [&] { return got == "ab"; }));
}

TEST_F(EventLoopTest, ABlockedSignalArrivesOnTheLoop) {
  BlockSignals({SIGUSR1});
  int count = 0;
  auto handle = loop_->OnSignal(SIGUSR1, [&] { ++count; });
  kill(getpid(), SIGUSR1);
  EXPECT_TRUE(RunUntil(*loop_, [&] { return count == 1; }));
}

}  // namespace
}  // namespace ndp::os
