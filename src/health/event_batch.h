// Between the thread that waits for events and the loop: equal events become one with a count, so
// a storm costs neither memory nor more than one task of the loop at a time. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "nvml/driver.h"

namespace ndp::health {

struct EventCount {
  nvml::Event event;
  std::uint64_t count = 1;
};

class EventBatch {
 public:
  // True where nothing was waiting: the caller then tells the loop to Take.
  bool Add(const nvml::Event& event);
  // In the order of first arrival.
  std::vector<EventCount> Take();
  // Events that found the batch full of others, since the start.
  std::uint64_t dropped() const;

 private:
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t, std::optional<unsigned>,
                         std::optional<unsigned>>;
  mutable Mutex mutex_;
  std::vector<EventCount> events_ NDP_GUARDED_BY(mutex_);
  std::map<Key, std::size_t> at_ NDP_GUARDED_BY(mutex_);
  std::uint64_t dropped_ NDP_GUARDED_BY(mutex_) = 0;
};

}  // namespace ndp::health
