#include "nvml/query_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "testing/result_matchers.h"

namespace ndp::nvml {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A driver call that hangs until the test lets it go.
class Hang {
 public:
  QueryWorker::Query Query(std::function<void()> done = [] {}) {
    return [latch = latch_, done = std::move(done)]() -> QueryWorker::Done {
      latch->get_future().wait();
      return done;
    };
  }
  void End() { latch_->set_value(); }

 private:
  std::shared_ptr<std::promise<void>> latch_ = std::make_shared<std::promise<void>>();
};

class QueryWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = os::EventLoop::Create();
    ASSERT_THAT(loop, IsOk());
    loop_ = std::move(*loop);
    guard_ = loop_->After(30s, [this] {
      ADD_FAILURE() << "the loop was never stopped";
      loop_->Stop();
    });
  }

  std::unique_ptr<QueryWorker> Worker(QueryWorker::Options options = {}) {
    return std::make_unique<QueryWorker>(*loop_, clock_, options,
                                         [this](const std::string& key, bool set_aside) {
                                           log_.push_back((set_aside ? "aside " : "back ") + key);
                                           if (on_set_aside_) on_set_aside_();
                                         });
  }
  // A query that answers at once; what it does on the loop is `text` in the log.
  QueryWorker::Query Say(std::string text, bool stop = false) {
    return [this, text = std::move(text), stop]() -> QueryWorker::Done {
      return [this, text, stop] {
        log_.push_back(text);
        if (stop) loop_->Stop();
      };
    };
  }

  SystemClock clock_;
  std::unique_ptr<os::EventLoop> loop_;
  os::EventLoop::Handle guard_;
  std::vector<std::string> log_;
  std::function<void()> on_set_aside_;
};

TEST_F(QueryWorkerTest, AnswersOnTheLoopInOrder) {
  auto worker = Worker();
  std::thread::id query_thread;
  std::thread::id done_thread;
  Hang hang;
  EXPECT_TRUE(worker->Run("a", [&, wait = hang.Query()]() mutable -> QueryWorker::Done {
    wait();
    query_thread = std::this_thread::get_id();
    return [&] { done_thread = std::this_thread::get_id(); };
  }));
  EXPECT_TRUE(worker->Run("b", Say("b")));
  EXPECT_TRUE(worker->Run("a", Say("a", true)));
  EXPECT_TRUE(worker->busy("a"));
  hang.End();
  loop_->Run();
  EXPECT_THAT(log_, ElementsAre("b", "a"));
  EXPECT_EQ(done_thread, std::this_thread::get_id());
  EXPECT_NE(query_thread, std::this_thread::get_id());
  EXPECT_TRUE(worker->idle());
}

TEST_F(QueryWorkerTest, ASlowKeyHoldsUpOnlyItself) {
  auto worker = Worker({.watchdog = 1h, .patience = 5ms});
  Hang hang;
  worker->Run("slow", hang.Query([this] { log_.emplace_back("slow"); }));
  worker->Run("slow", Say("slow again", true));
  worker->Run("b", Say("b"));
  worker->Run("c", [this, &hang]() -> QueryWorker::Done {
    return [this, &hang] {
      log_.emplace_back("c");
      hang.End();
    };
  });
  loop_->Run();
  EXPECT_THAT(log_, ElementsAre("b", "c", "slow", "slow again"));
}

TEST_F(QueryWorkerTest, AKeyPastTheWatchdogIsLeftAloneUntilItsCallReturns) {
  auto worker = Worker({.watchdog = 20ms, .patience = 5ms});
  Hang hang;
  worker->Run("hung", hang.Query([this] { log_.emplace_back("late result"); }));
  worker->Run("hung", Say("never begun"));
  on_set_aside_ = [&] {
    if (worker->set_aside("hung")) {
      EXPECT_FALSE(worker->Run("hung", Say("refused")));
      worker->Run("other", [this, &hang]() -> QueryWorker::Done {
        return [this, &hang] {
          log_.emplace_back("other");
          hang.End();
        };
      });
    } else {
      EXPECT_TRUE(worker->Run("hung", Say("again", true)));
    }
  };
  loop_->Run();
  EXPECT_THAT(log_, ElementsAre("aside hung", "other", "back hung", "again"));
  EXPECT_THAT(worker->all_set_aside(), IsEmpty());
}

TEST_F(QueryWorkerTest, AllKeysHungIsStillOnlyOneThreadEach) {
  auto worker = Worker({.watchdog = 20ms, .patience = 2ms});
  std::vector<Hang> hangs(4);
  int aside = 0;
  on_set_aside_ = [&] {
    if (worker->all_set_aside().size() == hangs.size() && ++aside == 1) {
      for (Hang& hang : hangs) hang.End();
    } else if (aside == 1 && worker->all_set_aside().empty()) {
      loop_->Stop();
    }
  };
  for (std::size_t i = 0; i < hangs.size(); ++i) {
    worker->Run(std::to_string(i), hangs[i].Query());
  }
  loop_->Run();
  EXPECT_EQ(aside, 1);
  EXPECT_TRUE(worker->idle());
}

TEST_F(QueryWorkerTest, ResultsOfADestroyedWorkerAreDropped) {
  auto worker = Worker();
  Hang hang;
  std::promise<void> begun;
  std::promise<void> ended;
  worker->Run("a", [&, query = hang.Query()]() mutable -> QueryWorker::Done {
    begun.set_value();
    query();
    ended.set_value();
    return [this] { log_.emplace_back("dropped"); };
  });
  begun.get_future().wait();
  worker.reset();
  hang.End();
  ended.get_future().wait();
  auto stop = loop_->After(20ms, [this] { loop_->Stop(); });
  loop_->Run();
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(QueryWorkerTest, ADestroyedWorkerNeedsNoLoop) {
  auto worker = Worker();
  Hang hang;
  worker->Run("a", hang.Query());
  worker.reset();
  guard_.Cancel();
  loop_.reset();
  hang.End();
}

TEST_F(QueryWorkerTest, ALateReturnAsksNoClock) {
  auto clock = std::make_unique<SystemClock>();
  auto worker = std::make_unique<QueryWorker>(*loop_, *clock, QueryWorker::Options{},
                                              [](const std::string&, bool) {});
  std::promise<void> inside;
  std::promise<void> end;
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> thread_is_done = held;
  worker->Run("a", [&, held = std::move(held)]() mutable -> QueryWorker::Done {
    inside.set_value();
    end.get_future().wait();
    return [held = std::move(held)] {};
  });
  inside.get_future().wait();
  worker.reset();
  clock.reset();
  end.set_value();
  while (!thread_is_done.expired()) std::this_thread::yield();
}

}  // namespace
}  // namespace ndp::nvml
