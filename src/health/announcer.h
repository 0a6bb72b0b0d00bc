// Tells people what happened: one structured log line per change of a verdict and per kind of
// event, at most 10 a minute for one cause, and the counters. Loop thread only.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "health/board.h"
#include "health/event_batch.h"
#include "health/xid.h"
#include "metrics/registry.h"

namespace ndp::health {

class Announcer {
 public:
  Announcer(const Clock& clock, metrics::Registry& metrics);

  // `gpu`: the UUID; empty where the driver named none that we know.
  void Event(const std::string& gpu, const EventCount& event, XidClass xid_class);
  void DroppedEvents(std::uint64_t total);
  void Verdicts(const HealthBoard& before, const HealthBoard& after);
  void Gauges(const HealthBoard& board);
  // A mistake, but by UUID (else empty) it may be another node's.
  void UnknownFence(const std::string& where, const std::string& uuid);
  void Note(const std::string& gpu, const std::string& note);
  void WaitFailed(const std::string& failure, Duration retry_in);
  void CannotWatch(const std::string& gpu, const std::string& failure);
  // Any other warning, limited by `cause`.
  void Warn(const std::string& cause, std::string_view message, const std::string& detail);

 private:
  metrics::Counter& XidCounter(const std::string& gpu, std::uint64_t xid, XidClass xid_class);

  metrics::Registry& metrics_;
  log::RateLimit limit_;
  metrics::Counter& wait_failures_;
  std::uint64_t dropped_ = 0;
  int xid_counters_ = 0;
  std::set<std::string> told_;
};

}  // namespace ndp::health
