// One JSON line for each thing that happens, with a monotonic timestamp in microseconds (the clock
// of CLOCK_MONOTONIC, so that lines of several programs can be compared). Thread-safe.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "doc/value.h"

namespace ndp::sim_kubelet {

class EventLog {
 public:
  using Sink = std::function<void(std::string_view line, const doc::Value& event)>;

  // The sink is called under a lock, one line at a time.
  explicit EventLog(Sink sink) : sink_(std::move(sink)) {}

  void Write(std::string_view event,
             std::initializer_list<std::pair<std::string_view, doc::Value>> fields);

 private:
  Mutex mutex_;
  Sink sink_ NDP_GUARDED_BY(mutex_);
};

}  // namespace ndp::sim_kubelet
