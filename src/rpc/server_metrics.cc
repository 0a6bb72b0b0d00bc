#include "rpc/server_metrics.h"

namespace ndp::rpc {

ServerMetrics::ServerMetrics(metrics::Registry& registry, const std::string& resource)
    : allocations(registry.AddCounter("ndp_allocations_total", "Allocate calls answered.",
                                      {{"resource", resource}})),
      allocation_errors(registry.AddCounter("ndp_allocation_errors_total",
                                            "Allocate calls refused.", {{"resource", resource}})),
      allocation_seconds(registry.AddHistogram("ndp_allocation_seconds",
                                               "Time to work out an answer to Allocate.",
                                               metrics::LatencyBounds(), {{"resource", resource}})),
      preferred(registry.AddCounter("ndp_preferred_allocations_total",
                                    "GetPreferredAllocation calls answered.",
                                    {{"resource", resource}})),
      preferred_errors(registry.AddCounter("ndp_preferred_allocation_errors_total",
                                           "GetPreferredAllocation calls refused.",
                                           {{"resource", resource}})),
      lists_sent(registry.AddCounter("ndp_lists_sent_total", "Device lists sent.",
                                     {{"resource", resource}})),
      streams(registry.AddGauge("ndp_list_streams", "Open ListAndWatch streams.",
                                {{"resource", resource}})),
      registered(registry.AddGauge("ndp_registered",
                                   "1 while the kubelet has the resource and reads its list.",
                                   {{"resource", resource}})),
      registrations(registry.AddCounter("ndp_registrations_total", "Registrations that succeeded.",
                                        {{"resource", resource}})),
      registrations_lost(registry.AddCounter("ndp_registrations_lost_total",
                                             "Registrations whose stream ended.",
                                             {{"resource", resource}})) {}

}  // namespace ndp::rpc
