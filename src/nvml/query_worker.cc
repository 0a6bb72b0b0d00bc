#include "nvml/query_worker.h"

#include <algorithm>
#include <list>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace ndp::nvml {
namespace {

// Results of one batch (a poll of all GPUs) reach the loop together: one wake-up instead of eight.
constexpr Duration kBatch = std::chrono::milliseconds(5);

struct Item {
  std::string key;
  QueryWorker::Query query;
};

// A thread that is inside a query.
struct Out {
  std::string key;
  MonoTime since;
  bool slow = false;       // no longer counts as the thread that serves the queue
  bool abandoned = false;  // its key is set aside
};

}  // namespace

struct QueryWorker::Shared {
  Shared(os::EventLoop::Poster post, const Clock& now) : poster(std::move(post)), clock(now) {}

  const os::EventLoop::Poster poster;
  const Clock& clock;            // while not closed
  QueryWorker* owner = nullptr;  // only on the loop's thread; null once destroyed

  mutable Mutex mutex;
  std::list<Item> queue NDP_GUARDED_BY(mutex);
  std::map<std::uint64_t, Out> out NDP_GUARDED_BY(mutex);  // by runner
  std::vector<Done> finished NDP_GUARDED_BY(mutex);
  MonoTime first_finished NDP_GUARDED_BY(mutex);
  std::uint64_t last_runner NDP_GUARDED_BY(mutex) = 0;
  // The worker is gone: a thread whose query returns late may use the queue's mutex, nothing else.
  bool closed NDP_GUARDED_BY(mutex) = false;
  int serving NDP_GUARDED_BY(mutex) = 0;  // threads that will look at the queue again, not slow

  bool KeyIsOut(const std::string& key) const NDP_REQUIRES(mutex) {
    return std::ranges::any_of(out, [&](const auto& entry) { return entry.second.key == key; });
  }
  auto NextRunnable() NDP_REQUIRES(mutex) {
    return std::ranges::find_if(queue, [this](const Item& item) { return !KeyIsOut(item.key); });
  }
};

QueryWorker::QueryWorker(os::EventLoop& loop, const Clock& clock, Options options,
                         OnSetAside on_set_aside)
    : loop_(loop),
      clock_(clock),
      options_(options),
      on_set_aside_(std::move(on_set_aside)),
      shared_(std::make_shared<Shared>(loop.poster(), clock)) {
  shared_->owner = this;
}

QueryWorker::~QueryWorker() {
  shared_->owner = nullptr;
  std::list<Item> dropped;
  MutexLock lock(shared_->mutex);
  shared_->closed = true;
  dropped.swap(shared_->queue);
}

bool QueryWorker::Run(std::string key, Query query) {
  if (set_aside_.contains(key)) return false;
  bool start = false;
  {
    MutexLock lock(shared_->mutex);
    shared_->queue.push_back({std::move(key), std::move(query)});
    start = shared_->serving == 0;
  }
  if (start) StartRunner();
  if (!timer_) timer_ = loop_.After(options_.patience, [this] { Look(); });
  return true;
}

void QueryWorker::StartRunner() {
  std::uint64_t runner = 0;
  {
    MutexLock lock(shared_->mutex);
    runner = ++shared_->last_runner;
    ++shared_->serving;
  }
  std::thread([shared = shared_, runner] { Serve(shared, runner); }).detach();
}

void QueryWorker::Serve(const std::shared_ptr<Shared>& shared, std::uint64_t runner) {
  for (;;) {
    Item item;
    {
      MutexLock lock(shared->mutex);
      if (shared->closed) return;
      auto next = shared->NextRunnable();
      if (next == shared->queue.end()) {
        --shared->serving;
        return;
      }
      item = std::move(*next);
      shared->queue.erase(next);
      shared->out[runner] = {.key = item.key, .since = shared->clock.Now()};
    }
    Done done = item.query();
    item.query = nullptr;  // what it holds (a driver) is let go before the loop hears of it

    Out was;
    bool deliver = false;
    {
      MutexLock lock(shared->mutex);
      if (shared->closed) return;
      was = std::move(shared->out[runner]);
      shared->out.erase(runner);
      if (!was.abandoned) {
        const MonoTime now = shared->clock.Now();
        if (shared->finished.empty()) shared->first_finished = now;
        if (done) shared->finished.push_back(std::move(done));
        deliver = shared->NextRunnable() == shared->queue.end() || was.slow ||
                  now - shared->first_finished >= kBatch;
      }
      // Another thread took over while this one was slow; with queued work of the same key left
      // it serves on, since nobody else may have looked after the key came free.
      if (was.slow && !was.abandoned) ++shared->serving;
    }
    if (was.abandoned) {
      done = nullptr;
      shared->poster.Post([shared, key = std::move(was.key)] {
        if (shared->owner != nullptr) shared->owner->Return(key);
      });
      return;
    }
    if (deliver) Deliver(shared);
  }
}

void QueryWorker::Deliver(const std::shared_ptr<Shared>& shared) {
  shared->poster.Post([shared] {
    std::vector<Done> finished;
    {
      MutexLock lock(shared->mutex);
      finished.swap(shared->finished);
    }
    for (Done& done : finished) {
      if (shared->owner == nullptr) return;
      done();
    }
    if (shared->owner != nullptr && shared->owner->idle()) shared->owner->timer_.Cancel();
  });
}

void QueryWorker::Look() {
  std::vector<std::string> hung;
  std::list<Item> dropped;
  bool start = false;
  bool deliver = false;
  Duration next = options_.watchdog;
  bool any = false;
  {
    MutexLock lock(shared_->mutex);
    const MonoTime now = clock_.Now();
    for (auto& [runner, out] : shared_->out) {
      if (out.abandoned) continue;
      any = true;
      const Duration age = now - out.since;
      if (age >= options_.patience && !out.slow) {
        out.slow = true;
        --shared_->serving;
      }
      if (age >= options_.watchdog) {
        out.abandoned = true;
        hung.push_back(out.key);
      } else {
        const Duration due = out.slow ? options_.watchdog : options_.patience;
        next = std::min(next, std::max<Duration>(due - age, std::chrono::milliseconds(1)));
      }
    }
    for (const std::string& key : hung) {
      for (auto each = shared_->queue.begin(); each != shared_->queue.end();) {
        const auto item = each++;
        if (item->key == key) dropped.splice(dropped.end(), shared_->queue, item);
      }
    }
    if (!shared_->queue.empty()) {
      any = true;
      next = std::min(next, options_.patience);
    }
    start = shared_->serving == 0 && shared_->NextRunnable() != shared_->queue.end();
    deliver = !shared_->finished.empty();
  }
  if (start) StartRunner();
  if (any || deliver) {
    timer_ = loop_.After(next, [this] { Look(); });
  } else {
    timer_.Cancel();
  }
  // Results that a batch was holding back behind the call that turned out slow.
  if (deliver) Deliver(shared_);
  for (const std::string& key : hung) set_aside_.insert(key);
  const auto alive = shared_;
  for (const std::string& key : hung) {
    if (alive->owner == nullptr) return;
    on_set_aside_(key, true);
  }
}

void QueryWorker::Return(const std::string& key) {
  set_aside_.erase(key);
  on_set_aside_(key, false);
}

bool QueryWorker::busy(const std::string& key) const {
  MutexLock lock(shared_->mutex);
  return shared_->KeyIsOut(key) ||
         std::ranges::any_of(shared_->queue, [&](const Item& item) { return item.key == key; });
}

bool QueryWorker::idle() const {
  MutexLock lock(shared_->mutex);
  return shared_->queue.empty() && shared_->out.empty();
}

}  // namespace ndp::nvml
