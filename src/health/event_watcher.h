// Waits for NVML's events of all GPUs in one event set on one detached thread. The wait cannot be
// interrupted, so it comes in slices; stopping means that the thread ends after its slice, and
// nobody waits for it. It owns the Driver it uses and talks only by posting to the loop.
//
// A wait that fails ends the thread: whoever owns the watcher looks which GPU is at fault and
// starts it again, later and without that GPU, so that a lost GPU (whose event set fails at once,
// again and again) never makes it spin. All members belong to the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "health/event_batch.h"
#include "nvml/driver.h"
#include "os/event_loop.h"

namespace ndp::health {

class EventWatcher {
 public:
  struct Callbacks {
    // `dropped`: how many events were lost in storms, since the start.
    std::function<void(const std::vector<EventCount>&, std::uint64_t dropped)> events;
    // The set is made; those that could not be registered, with the reason.
    std::function<void(const std::map<std::string, nvml::Failure>& not_registered)> registered;
    // No event set, or the wait failed: nothing is watched any more.
    std::function<void(const nvml::Failure&)> failed;
  };

  EventWatcher(os::EventLoop& loop, const Clock& clock, Callbacks callbacks,
               std::chrono::milliseconds slice = std::chrono::seconds(5));
  ~EventWatcher();
  EventWatcher(const EventWatcher&) = delete;
  EventWatcher& operator=(const EventWatcher&) = delete;

  // Watches these GPUs (PCI bus ids) from now on. The set before, if any, is heard until the new
  // one is registered, and so is one that was stopped.
  void Start(std::shared_ptr<nvml::Driver> driver, std::vector<std::string> gpus,
             std::uint64_t wanted);
  // The thread ends after its slice; what happens until then is heard.
  void Stop();
  bool watching() const { return current_ != nullptr; }
  // For how long a call of the set has been seen out beyond its time: zero where all is well. Seen
  // by asking now and then, which wakes nobody up.
  Duration Overdue();

 private:
  struct Run;
  static void Watch(const std::shared_ptr<Run>& run, std::shared_ptr<nvml::Driver> driver,
                    const std::vector<std::string>& gpus, std::uint64_t wanted,
                    std::chrono::milliseconds slice);
  void Drain(const std::shared_ptr<Run>& run);
  void DrainWaiting();
  void Drop(std::shared_ptr<Run>& run);
  void DropLeaving();

  os::EventLoop& loop_;
  const Clock& clock_;
  Callbacks callbacks_;
  std::chrono::milliseconds slice_;
  std::shared_ptr<Run> current_;
  std::shared_ptr<Run> before_;  // until `current_` is registered
  std::vector<std::shared_ptr<Run>> leaving_;
  std::vector<std::shared_ptr<Run>> waiting_;  // to be drained
  std::weak_ptr<Run> seen_run_;                // of the last Overdue
  std::uint64_t seen_calls_ = 0;
  MonoTime seen_since_{};
  std::optional<MonoTime> last_drain_;
  os::EventLoop::Handle drain_timer_;
};

}  // namespace ndp::health
