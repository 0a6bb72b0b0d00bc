// What is counted of one resource's server. Thread-safe.
#pragma once

#include <string>

#include "metrics/registry.h"

namespace ndp::rpc {

struct ServerMetrics {
  ServerMetrics(metrics::Registry& registry, const std::string& resource);

  metrics::Counter& allocations;
  metrics::Counter& allocation_errors;
  metrics::Histogram& allocation_seconds;
  metrics::Counter& preferred;
  metrics::Counter& preferred_errors;
  metrics::Counter& lists_sent;
  metrics::Gauge& streams;
  metrics::Gauge& registered;
  metrics::Counter& registrations;
  metrics::Counter& registrations_lost;
};

}  // namespace ndp::rpc
