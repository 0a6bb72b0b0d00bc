#include "health/event_batch.h"

#include <utility>

namespace ndp::health {
namespace {
// Distinct events in one turn of the loop; a real GPU has a handful.
constexpr std::size_t kMost = 1024;
}  // namespace

bool EventBatch::Add(const nvml::Event& event) {
  MutexLock lock(mutex_);
  const bool first = events_.empty();
  const Key key{event.pci_bus_id, event.type, event.data, event.gpu_instance,
                event.compute_instance};
  if (const auto at = at_.find(key); at != at_.end()) {
    ++events_[at->second].count;
  } else if (events_.size() >= kMost) {
    ++dropped_;
  } else {
    at_.emplace(key, events_.size());
    events_.push_back({.event = event});
  }
  return first;
}

std::vector<EventCount> EventBatch::Take() {
  MutexLock lock(mutex_);
  at_.clear();
  return std::exchange(events_, {});
}

std::uint64_t EventBatch::dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace ndp::health
