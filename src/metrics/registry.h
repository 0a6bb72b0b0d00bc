// The program's numbers and their Prometheus text. Thread-safe: an update is one atomic operation,
// a look-up by name takes a lock, so keep the reference.
//
//   metrics::Counter& lists = registry.AddCounter("ndp_lists_sent_total", "Device lists sent.",
//                                                 {{"resource", "nvidia.com/gpu"}});
//   lists.Increment();
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"

namespace ndp::metrics {

using Labels = std::map<std::string, std::string>;

// Only grows. By convention its name ends in _total.
class Counter {
 public:
  void Increment(std::uint64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

// Goes up and down.
class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

// How often values fell at or below each bound.
class Histogram {
 public:
  // Ascending bounds; values above the last are counted too.
  explicit Histogram(std::span<const double> bounds);
  void Observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  // Not cumulative; one more than bounds.
  std::vector<std::uint64_t> counts() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

// Seconds: 100 µs to 10 s.
std::span<const double> LatencyBounds();

class Registry {
 public:
  // The metric of this name and these labels, made where it is new; it lives as long as the
  // registry. A name has one type; a wrong name or another type is a broken invariant.
  Counter& AddCounter(std::string_view name, std::string_view help, const Labels& labels = {});
  Gauge& AddGauge(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& AddHistogram(std::string_view name, std::string_view help,
                          std::span<const double> bounds, const Labels& labels = {});

  // All gauges of a name at once: those of devices and resources that are gone vanish. For what is
  // derived from a snapshot.
  void ReplaceGauges(std::string_view name, std::string_view help,
                     const std::vector<std::pair<Labels, double>>& values);

  // Prometheus text format 0.0.4, sorted by name and labels.
  std::string Text() const;

 private:
  using Metric = std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>,
                              std::unique_ptr<Histogram>, double>;
  struct Family {
    std::string help;
    std::string_view type;
    std::map<std::string, Metric> metrics;  // by their labels' text
  };

  Family& FamilyOf(std::string_view name, std::string_view help, std::string_view type)
      NDP_REQUIRES(mutex_);
  template <typename T, typename... Args>
  T& Add(std::string_view name, std::string_view help, std::string_view type, const Labels& labels,
         Args&&... args);

  mutable Mutex mutex_;
  std::map<std::string, Family, std::less<>> families_ NDP_GUARDED_BY(mutex_);
};

inline constexpr std::string_view kTextContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace ndp::metrics
