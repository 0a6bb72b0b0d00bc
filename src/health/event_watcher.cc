#include "health/event_watcher.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

namespace ndp::health {
namespace {
// The first event is heard at once; in a storm the loop hears of the rest this often.
constexpr Duration kPause = std::chrono::milliseconds(3);
// What is taken from a set that is left: a storm must not hold the session open.
constexpr int kMostLeft = 4096;
}  // namespace

// One thread and its event set.
struct EventWatcher::Run {
  explicit Run(os::EventLoop::Poster post) : poster(std::move(post)) {}

  const os::EventLoop::Poster poster;
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> calls = 0;  // of the driver, so far
  std::atomic<bool> out = false;         // one of them is
  EventBatch batch;
  EventWatcher* owner = nullptr;  // only on the loop's thread; null once dropped

  // Runs `task(owner)` on the loop unless this run has been dropped by then.
  template <typename Task>
  static void Tell(const std::shared_ptr<Run>& run, Task task) {
    run->poster.Post([run, task = std::move(task)]() mutable {
      if (run->owner != nullptr) task(*run->owner);
    });
  }
};

EventWatcher::EventWatcher(os::EventLoop& loop, const Clock& clock, Callbacks callbacks,
                           std::chrono::milliseconds slice)
    : loop_(loop), clock_(clock), callbacks_(std::move(callbacks)), slice_(slice) {}

EventWatcher::~EventWatcher() {
  Drop(before_);
  Drop(current_);
  DropLeaving();
}

void EventWatcher::Start(std::shared_ptr<nvml::Driver> driver, std::vector<std::string> gpus,
                         std::uint64_t wanted) {
  Drop(before_);
  before_ = std::exchange(current_, std::make_shared<Run>(loop_.poster()));
  current_->owner = this;
  std::thread([run = current_, driver = std::move(driver), gpus = std::move(gpus), wanted,
               slice = slice_]() mutable {
    Watch(run, std::move(driver), gpus, wanted, slice);
  }).detach();
}

void EventWatcher::Stop() {
  Drop(before_);
  if (current_ == nullptr) return;
  current_->stop = true;
  leaving_.push_back(std::exchange(current_, nullptr));
}

Duration EventWatcher::Overdue() {
  const MonoTime now = clock_.Now();
  if (current_ == nullptr || !current_->out) {
    seen_run_.reset();
    return Duration::zero();
  }
  const std::uint64_t calls = current_->calls;
  if (seen_run_.lock() != current_ || seen_calls_ != calls) {
    seen_run_ = current_;
    seen_calls_ = calls;
    seen_since_ = now;
  }
  return std::max(now - seen_since_ - slice_, Duration::zero());
}

void EventWatcher::Drain(const std::shared_ptr<Run>& run) {
  waiting_.push_back(run);
  const MonoTime now = clock_.Now();
  if (last_drain_ && now - *last_drain_ < kPause) {
    drain_timer_ = loop_.After(*last_drain_ + kPause - now, [this] { DrainWaiting(); });
  } else {
    DrainWaiting();
  }
}

void EventWatcher::DrainWaiting() {
  last_drain_ = clock_.Now();
  for (const std::shared_ptr<Run>& run : std::exchange(waiting_, {})) {
    if (run->owner == nullptr) continue;
    const auto events = run->batch.Take();
    if (!events.empty()) callbacks_.events(events, run->batch.dropped());
  }
}

void EventWatcher::Drop(std::shared_ptr<Run>& run) {
  if (run == nullptr) return;
  run->stop = true;
  run->owner = nullptr;
  run.reset();
}

void EventWatcher::DropLeaving() {
  for (std::shared_ptr<Run>& run : leaving_) Drop(run);
  leaving_.clear();
}

void EventWatcher::Watch(const std::shared_ptr<Run>& run, std::shared_ptr<nvml::Driver> driver,
                         const std::vector<std::string>& gpus, std::uint64_t wanted,
                         std::chrono::milliseconds slice) {
  const auto fail = [&run](const nvml::Failure& failure) {
    Run::Tell(run, [run, failure](EventWatcher& watcher) {
      if (run != watcher.current_) return watcher.Drop(watcher.before_);
      watcher.DrainWaiting();
      watcher.Drop(watcher.before_);
      watcher.Drop(watcher.current_);
      watcher.callbacks_.failed(failure);
    });
  };
  const auto end = [&run] {
    Run::Tell(run, [run](EventWatcher& watcher) {
      watcher.DrainWaiting();
      run->owner = nullptr;
      std::erase(watcher.leaving_, run);
    });
  };
  const auto ask = [&run] {
    ++run->calls;
    run->out = true;
  };
  ask();
  auto source = driver->OpenEvents();
  driver.reset();  // the source keeps it
  if (!source) return run->stop ? end() : fail(source.error());

  std::map<std::string, nvml::Failure> not_registered;
  for (const std::string& gpu : gpus) {
    ask();
    if (auto mask = (*source)->Register(gpu, wanted); !mask) {
      not_registered.emplace(gpu, std::move(mask).error());
    }
  }
  const bool none = not_registered.size() == gpus.size();
  Run::Tell(run, [run, not_registered = std::move(not_registered)](EventWatcher& watcher) {
    if (run != watcher.current_) return;
    watcher.Drop(watcher.before_);
    watcher.DropLeaving();
    watcher.callbacks_.registered(not_registered);
  });
  // An empty set would time out for ever.
  run->out = false;
  if (none) return end();

  for (int left = 0; left < kMostLeft;) {
    const bool leaving = run->stop;
    left += leaving ? 1 : 0;
    ask();
    auto event = (*source)->Wait(leaving ? std::chrono::milliseconds(0) : slice);
    if (!event) {
      if (run->stop) break;
      return fail(event.error());
    }
    if (*event) {
      if (run->batch.Add(**event)) {
        Run::Tell(run, [run](EventWatcher& watcher) { watcher.Drain(run); });
      }
    } else if (run->stop) {
      break;
    }
  }
  end();
}

}  // namespace ndp::health
