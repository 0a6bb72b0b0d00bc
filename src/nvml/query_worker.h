// Runs blocking driver calls away from the loop, so that a call that hangs costs one thread and one
// GPU and nothing else.
//
// A query runs on a detached thread and returns what is then to run on the loop. Queries of one key
// (a GPU's PCI bus id, or "driver") run one after the other; those of other keys never wait for a
// slow one longer than `patience`. A query out longer than `watchdog` sets its key aside: no
// further query of that key runs until the old one returns, and its result is dropped. So there is
// at most one stuck thread per key, and none at all while nothing is asked.
//
//   worker.Run(pci, [driver, pci]() -> QueryWorker::Done {
//     auto sample = driver->Sample(pci);
//     return [sample = std::move(sample)] { … on the loop … };
//   });
//
// All members belong to the loop's thread. Nothing waits for the threads: destroying the worker
// forgets them, and their results are dropped.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "os/event_loop.h"

namespace ndp::nvml {

class QueryWorker {
 public:
  using Done = os::EventLoop::Task;
  using Query = std::move_only_function<Done()>;
  // A key was set aside (true), or its call has come back (false).
  using OnSetAside = std::function<void(const std::string& key, bool set_aside)>;

  struct Options {
    Duration watchdog = std::chrono::seconds(60);
    // After which a further thread serves the other keys.
    Duration patience = std::chrono::milliseconds(250);
  };

  // `clock` must be thread-safe; it and `loop` outlive the worker.
  QueryWorker(os::EventLoop& loop, const Clock& clock, Options options, OnSetAside on_set_aside);
  ~QueryWorker();
  QueryWorker(const QueryWorker&) = delete;
  QueryWorker& operator=(const QueryWorker&) = delete;

  // False, and nothing happens, while the key is set aside. When a key is set aside its queries
  // that have not begun are dropped: neither they nor their Done run.
  bool Run(std::string key, Query query);

  // Whether a query of the key waits, runs or hangs.
  bool busy(const std::string& key) const;
  bool set_aside(const std::string& key) const { return set_aside_.contains(key); }
  const std::set<std::string>& all_set_aside() const { return set_aside_; }
  // Nothing waits, runs or hangs: no thread of the worker uses a driver.
  bool idle() const;

  void set_watchdog(Duration watchdog) { options_.watchdog = watchdog; }

 private:
  struct Shared;
  static void Serve(const std::shared_ptr<Shared>& shared, std::uint64_t runner);
  static void Deliver(const std::shared_ptr<Shared>& shared);
  void StartRunner();
  void Look();
  void Return(const std::string& key);

  os::EventLoop& loop_;
  const Clock& clock_;
  Options options_;
  OnSetAside on_set_aside_;
  std::set<std::string> set_aside_;
  os::EventLoop::Handle timer_;  // armed while a query is out
  std::shared_ptr<Shared> shared_;
};

}  // namespace ndp::nvml
