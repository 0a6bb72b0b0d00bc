#include "health/announcer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ndp::health {
namespace {

// A driver that makes up XIDs must not fill the registry.
constexpr int kMostXidCounters = 512;
// Numbers beyond share one cause in the log.
constexpr std::uint64_t kUnknownXids = 1000;

std::string Dropped(std::uint64_t dropped) {
  return dropped == 0 ? "" : fmt::format("{}", dropped);
}

}  // namespace

Announcer::Announcer(const Clock& clock, metrics::Registry& metrics)
    : metrics_(metrics),
      limit_(clock),
      wait_failures_(metrics.AddCounter("ndp_event_wait_failures_total",
                                        "Failed waits for events of the driver.")) {}

metrics::Counter& Announcer::XidCounter(const std::string& gpu, std::uint64_t xid,
                                        XidClass xid_class) {
  constexpr std::string_view kName = "ndp_xid_events_total";
  constexpr std::string_view kHelp = "XID events by GPU, number and the class it has here.";
  if (++xid_counters_ > kMostXidCounters) {
    return metrics_.AddCounter(kName, kHelp, {{"gpu", gpu}, {"xid", "other"}, {"class", ""}});
  }
  return metrics_.AddCounter(kName, kHelp,
                             {{"gpu", gpu},
                              {"xid", fmt::format("{}", xid)},
                              {"class", std::string(XidClassName(xid_class))}});
}

void Announcer::Event(const std::string& gpu, const EventCount& event, XidClass xid_class) {
  const nvml::Event& what = event.event;
  if (what.type != nvml::kEventXid) {
    const std::string type = fmt::format("{:#x}", what.type);
    metrics_
        .AddCounter("ndp_driver_events_total", "Events of the driver other than XIDs, by type.",
                    {{"gpu", gpu}, {"type", type}})
        .Increment(event.count);
    if (limit_.Allow("event " + type + gpu)) {
      log::Info("driver event", {{"gpu", gpu}, {"type", type}});
    }
    return;
  }
  // Known pairs are found again, new ones are counted against the limit.
  metrics::Counter& counter = XidCounter(gpu, what.data, xid_class);
  if (counter.value() > 0) --xid_counters_;
  counter.Increment(event.count);

  std::uint64_t dropped = 0;
  if (!limit_.Allow(fmt::format("xid {} {}", std::min(what.data, kUnknownXids), gpu), &dropped))
    return;
  const auto instance = [](const std::optional<unsigned>& id) {
    return id ? fmt::format("{}", *id) : std::string("-");
  };
  const auto level = xid_class == XidClass::kIgnore ? log::Level::kDebug : log::Level::kWarning;
  log::Write(level, "XID",
             {{"gpu", gpu.empty() ? what.pci_bus_id : gpu},
              {"xid", what.data},
              {"class", std::string(XidClassName(xid_class))},
              {"meaning", std::string(XidMeaning(what.data))},
              {"gi", instance(what.gpu_instance)},
              {"ci", instance(what.compute_instance)},
              {"count", event.count},
              {"lines_dropped", Dropped(dropped)}});
}

void Announcer::DroppedEvents(std::uint64_t total) {
  if (total == dropped_) return;
  metrics_
      .AddCounter("ndp_driver_events_dropped_total",
                  "Events that a storm of different ones displaced before they were read.")
      .Increment(total - dropped_);
  dropped_ = total;
}

void Announcer::Verdicts(const HealthBoard& before, const HealthBoard& after) {
  for (const Transition& change : Transitions(before, after)) {
    const bool healthy = change.after.healthy;
    if (change.before.healthy != healthy) {
      metrics_
          .AddCounter("ndp_health_changes_total", "Changes of a device's verdict.",
                      {{"to", healthy ? "Healthy" : "Unhealthy"}})
          .Increment();
    }
    std::uint64_t dropped = 0;
    const DeviceHealth& told = healthy ? change.before : change.after;
    if (!limit_.Allow(change.uuid + told.reason, &dropped)) continue;
    const auto xid = told.xid ? fmt::format("{}", *told.xid) : std::string();
    if (healthy) {
      log::Info("device is Healthy again",
                {{"device", change.uuid}, {"was", told.reason}, {"class", told.cause_class}});
    } else {
      log::Warning("device is Unhealthy", {{"device", change.uuid},
                                           {"reason", told.reason},
                                           {"class", told.cause_class},
                                           {"xid", xid},
                                           {"since", FormatWallTime(told.since)},
                                           {"next_step", told.next_step},
                                           {"lines_dropped", Dropped(dropped)}});
    }
  }
  for (const auto& [uuid, device] : after.devices) {
    for (const std::string& warning : device.warnings) {
      const auto& old = before.Of(uuid).warnings;
      if (std::find(old.begin(), old.end(), warning) == old.end()) {
        Warn(fmt::format("{} {}", uuid, warning), "device has a warning",
             fmt::format("{}: {}", uuid, warning));
      }
    }
  }
}

void Announcer::Gauges(const HealthBoard& board) {
  std::vector<std::pair<metrics::Labels, double>> healthy;
  for (const auto& [uuid, device] : board.devices) {
    healthy.push_back(
        {{{"device", uuid}, {"class", device.cause_class}}, device.healthy ? 1.0 : 0.0});
  }
  metrics_.ReplaceGauges("ndp_device_healthy", "1 where the device is Healthy; why not by class.",
                         healthy);
  metrics_.AddGauge("ndp_driver_available", "1 while the driver answers.")
      .Set(board.driver.available ? 1 : 0);
}

void Announcer::Note(const std::string& gpu, const std::string& note) {
  if (limit_.Allow(gpu + note)) log::Info("GPU health", {{"gpu", gpu}, {"what", note}});
}

void Announcer::UnknownFence(const std::string& where, const std::string& uuid) {
  if (!limit_.Allow("fence " + where)) return;
  const log::Level level = uuid.empty() ? log::Level::kWarning : log::Level::kInfo;
  log::Write(level, "a fence names no GPU of this node", {{"what", where}, {"uuid", uuid}});
}

void Announcer::WaitFailed(const std::string& failure, Duration retry_in) {
  wait_failures_.Increment();
  std::uint64_t dropped = 0;
  if (!limit_.Allow("wait " + failure, &dropped)) return;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(retry_in).count();
  log::Warning("waiting for events failed", {{"error", failure},
                                             {"retry_in_ms", fmt::format("{}", ms)},
                                             {"lines_dropped", Dropped(dropped)}});
}

void Announcer::CannotWatch(const std::string& gpu, const std::string& failure) {
  // Once for each GPU and cause: a refresh finds it again.
  if (!told_.insert(gpu + failure).second) return;
  log::Warning("events of a GPU cannot be watched: polls go on",
               {{"gpu", gpu}, {"error", failure}});
}

void Announcer::Warn(const std::string& cause, std::string_view message,
                     const std::string& detail) {
  if (limit_.Allow(cause)) log::Warning(message, {{"what", detail}});
}

}  // namespace ndp::health
