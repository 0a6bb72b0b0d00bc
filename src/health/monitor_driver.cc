// The part of Monitor that asks the driver: events, looks, recovery actions.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "health/monitor.h"

namespace ndp::health {
namespace {

constexpr std::uint64_t kWantedEvents =
    nvml::kEventXid | nvml::kEventDoubleBitEcc | nvml::kEventDramRetirementFailure |
    nvml::kEventFatalPoison | nvml::kEventGpuUnavailable | nvml::kEventRecoveryAction;
constexpr Duration kNoSoonerLook = std::chrono::milliseconds(1);
constexpr int kGpuNotFound = 28;
constexpr Duration kCulpritFound = std::chrono::milliseconds(50);

}  // namespace

template <typename Ask, typename Answer>
bool Monitor::Query(const Gpu& gpu, Ask ask, Answer answer) {
  return deps_.worker.Run(
      gpu.seen.pci_bus_id(),
      [this, alive = alive_, session = session_, driver = driver_, pci = gpu.seen.pci_bus_id(),
       ask = std::move(ask), answer = std::move(answer)]() mutable -> nvml::QueryWorker::Done {
        auto reply = ask(*driver, pci);
        driver.reset();
        return [this, alive = std::move(alive), session, reply = std::move(reply),
                answer = std::move(answer)]() mutable {
          if (*alive && session == session_) answer(reply);
        };
      });
}

std::vector<std::string> Monitor::Watchable() const {
  std::vector<std::string> gpus;
  for (const auto& [uuid, gpu] : gpus_) {
    // To register one that hangs would hang the watch of all.
    const bool hung = deps_.worker.set_aside(gpu->seen.pci_bus_id());
    if (gpu->usable() && !gpu->lost && !gpu->apart && !hung) {
      gpus.push_back(gpu->seen.pci_bus_id());
    }
  }
  return gpus;
}

void Monitor::WatchEvents() {
  watch_timer_.Cancel();
  watched_ = Watchable();
  if (driver_ == nullptr || watched_.empty() || !xids_.watches_events()) return watcher_.Stop();
  back_off_.Started(deps_.clock.Now());
  watcher_.Start(driver_, watched_, xids_.all_disabled() ? nvml::kEventXid : kWantedEvents);
}

void Monitor::OnRegistered(const std::map<std::string, nvml::Failure>& not_registered) {
  for (const auto& [pci, failure] : not_registered) {
    Gpu* gpu = FindPci(pci);
    if (gpu == nullptr) continue;
    // Not able to watch is not unhealthy.
    announcer_.CannotWatch(gpu->seen.uuid(), failure.Message());
    if (!failure.unsupported()) Look(*gpu, Why::kWaitFailed);
  }
}

void Monitor::OnWaitFailed(const nvml::Failure& failure) {
  const Duration wait = back_off_.Failed(deps_.clock.Now());
  announcer_.WaitFailed(failure.Message(), wait);
  watched_.clear();
  watch_timer_ = deps_.loop.After(wait, [this] { WatchEvents(); });
  if (failure.driver_gone()) {
    NoteTrouble(failure.Message());
    return AskRefresh(failure.Message());
  }
  PollAll(Why::kWaitFailed);
}

void Monitor::OnEvents(const std::vector<EventCount>& events, std::uint64_t dropped) {
  announcer_.DroppedEvents(dropped);
  for (const EventCount& event : events) OnEvent(event);
  Build();
}

void Monitor::OnEvent(const EventCount& event) {
  const nvml::Event& what = event.event;
  const bool is_xid = what.type == nvml::kEventXid;
  const XidClass xid_class = is_xid ? xids_.Classify(what.data) : XidClass::kDriver;
  Gpu* gpu = FindPci(what.pci_bus_id);
  announcer_.Event(gpu != nullptr ? gpu->seen.uuid() : std::string(), event, xid_class);
  if (xid_class == XidClass::kIgnore || (!is_xid && xids_.all_disabled())) return;
  if (gpu == nullptr) {
    // The driver named none we know: each is looked at, instead of all being marked.
    for (auto& [uuid, each] : gpus_) Look(*each, Why::kPoll);
    return;
  }
  if (is_xid) {
    const Scope scope = ScopeOf(gpu->seen, what, xid_class == XidClass::kReset);
    gpu->health.OnXid(what.data, xid_class, scope, event.count);
    if (!scope.whole() && AffectedDevices(gpu->seen, scope).size() == 1) {
      AskRefresh(fmt::format("an event names{} that is not known", ScopeText(scope)));
    }
    // Its queries may hang for 45 s each: it is left alone first.
    if (IsGspTimeout(what.data) && gpu->health.cautious()) return;
  } else if (what.type != nvml::kEventRecoveryAction) {
    Look(*gpu, Why::kPoll);
  }
  // NVML's event of a changed action carries no action, and the action may come late.
  ReadAction(*gpu);
  if (!gpu->second_read) {
    gpu->second_read = deps_.loop.After(timing_.second_action_read, [this, gpu] {
      gpu->second_read.Cancel();
      ReadAction(*gpu);
    });
  }
  // What the counters are now is what a reset is told by later.
  if (!gpu->health.healthy() && gpu->health.record().counters == Counters{}) {
    Look(*gpu, Why::kPoll);
  }
}

void Monitor::ReadAction(Gpu& gpu) {
  if (driver_ == nullptr || !gpu.usable() || gpu.reading_action || gpu.health.cautious()) return;
  if (gpu.apart) return Look(gpu, Why::kPoll);
  const std::string uuid = gpu.seen.uuid();
  gpu.reading_action = Query(
      gpu, [](nvml::Driver& driver, const std::string& pci) { return driver.RecoveryAction(pci); },
      [this, uuid](const nvml::Reply<int>& action) { OnAction(uuid, action); });
}

void Monitor::OnAction(const std::string& uuid, const nvml::Reply<int>& action) {
  Gpu& gpu = Track(uuid);
  gpu.reading_action = false;
  if (action) {
    gpu.health.OnRecoveryAction(*action);
  } else if (action.error().lost() || action.error().status == nvml::kResetRequired) {
    gpu.lost = true;
    gpu.health.OnLost(action.error().Message());
  }
  Build();
}

// Not able to watch is not unhealthy, but somebody should know.
void Monitor::CheckWatcher() {
  const bool overdue = watcher_.Overdue() > settings_.watchdog;
  if (overdue == told_overdue_) return;
  told_overdue_ = overdue;
  if (overdue) {
    announcer_.Warn("watcher", "events of GPUs cannot be watched: polls go on",
                    "the driver's call for them does not return");
  } else {
    announcer_.Note("", "events of GPUs are watched again");
  }
}

void Monitor::PollAll(Why why) {
  CheckWatcher();
  for (auto& [uuid, gpu] : gpus_) {
    if (!gpu->health.cautious()) Look(*gpu, why);
  }
  FinishFirstPoll();
}

void Monitor::Look(Gpu& gpu, Why why) {
  if (driver_ == nullptr || !gpu.usable() || gpu.looking) return;
  const std::string uuid = gpu.seen.uuid();
  const Depth depth = gpu.health.cautious() ? Depth::kCheap : Depth::kFull;
  gpu.looking = Query(
      gpu,
      [depth, apart = gpu.apart, examine_apart = deps_.examine_apart](nvml::Driver& driver,
                                                                      const std::string& pci) {
        return apart ? examine_apart(pci, depth) : Examine(driver, pci, depth);
      },
      [this, uuid, why](const Examination& found) { OnLooked(uuid, why, found); });
}

void Monitor::OnLooked(const std::string& uuid, Why why, const Examination& examination) {
  Gpu& gpu = Track(uuid);
  gpu.looking = false;
  gpu.polled = true;
  gpu.failure = examination.failure;
  if (examination.failure && examination.failure->driver_gone()) {
    NoteTrouble(examination.failure->Message());
    AskRefresh(examination.failure->Message());
    return FinishFirstPoll();
  }
  const bool at_once = why == Why::kWaitFailed && xids_.watches_events();
  const bool polled = settings_.polling.enabled;
  config::Health::Checks checks{.lost = false,
                                .row_remap = false,
                                .recovery_action = false,
                                .retired_pages = false,
                                .temperature = false,
                                .fabric = false,
                                .compute_mode = false};
  if (polled) checks = settings_.polling.checks;
  checks.lost |= at_once;

  CheckContext context;
  const auto use = uses_.find(uuid);
  if (use != uses_.end()) context = {.shared = use->second.shared, .mps = use->second.mps};
  context.fabric_expected = std::ranges::any_of(
      gpus_, [](const auto& each) { return each.second->health.record().fabric_completed; });
  gpu.health.OnExamination({.examination = examination,
                            .expected_uuid = uuid,
                            .checks = checks,
                            .context = context,
                            .polled = polled || at_once,
                            .at_once = at_once});

  const bool was_lost = std::exchange(
      gpu.lost, examination.failure && (examination.failure->lost() ||
                                        examination.failure->status == nvml::kResetRequired));
  // It answers again: events of it count again, where no back-off is running.
  if (was_lost && !gpu.lost && watcher_.watching()) WatchEvents();
  // This is what the wait failed at: the others' events must not be missed for longer than it takes
  // to look for more of its kind.
  if (!was_lost && gpu.lost && at_once && watch_timer_ && back_off_.first()) {
    watch_timer_ = deps_.loop.After(kCulpritFound, [this] { WatchEvents(); });
  }
  if (!examination.failure && examination.uuid != uuid) {
    AskRefresh(fmt::format("another GPU answers at {}", gpu.seen.pci_bus_id()));
  } else if (examination.failure && (examination.failure->status == nvml::kNotFound ||
                                     examination.failure->status == kGpuNotFound)) {
    AskRefresh(fmt::format("no GPU answers at {}", gpu.seen.pci_bus_id()));
  } else if (AllFail()) {
    trouble_in_looks_ = true;
    NoteTrouble("no GPU answers: " + examination.failure->Message());
    AskRefresh("no GPU answers");
  } else if (!examination.failure) {
    EndTrouble();
  }
  BuildSoon();
  FinishFirstPoll();
}

bool Monitor::AllFail() const {
  bool any = false;
  for (const auto& [uuid, gpu] : gpus_) {
    if (!gpu->usable()) continue;
    // A lost GPU is its own trouble, and a hanging one too.
    if (!gpu->failure || gpu->lost || deps_.worker.set_aside(gpu->seen.pci_bus_id())) return false;
    any = true;
  }
  return any;
}

void Monitor::OnSetAside(const std::string& key, bool set_aside) {
  Gpu* gpu = FindPci(key);
  if (gpu == nullptr) return;
  gpu->looking = false;
  gpu->reading_action = false;
  if (set_aside) {
    gpu->health.OnHang();
  } else {
    gpu->health.OnHangOver();
  }
  if (driver_ != nullptr && !watch_timer_ && Watchable() != watched_) WatchEvents();
  Build();
  FinishFirstPoll();
}

void Monitor::LookWhereDue() {
  const MonoTime now = deps_.clock.Now();
  for (auto& [uuid, gpu] : gpus_) {
    const auto next = gpu->health.NextLook();
    if (next && *next <= now) Look(*gpu, Why::kPoll);
  }
  ArmLooks();
}

void Monitor::ArmLooks() {
  look_timer_.Cancel();
  if (driver_ == nullptr) return;
  std::optional<MonoTime> next;
  for (const auto& [uuid, gpu] : gpus_) {
    if (!gpu->usable() || gpu->looking) continue;
    const auto wanted = gpu->health.NextLook();
    if (wanted && (!next || *wanted < *next)) next = wanted;
  }
  if (!next) return;
  const Duration wait = std::max<Duration>(*next - deps_.clock.Now(), kNoSoonerLook);
  look_timer_ = deps_.loop.After(wait, [this] { LookWhereDue(); });
}

void Monitor::FirstPoll(std::function<void()> done) {
  first_poll_ = std::move(done);
  first_poll_timer_ = deps_.loop.After(timing_.first_poll, [this] {
    if (const auto call = std::exchange(first_poll_, nullptr)) call();
  });
  FinishFirstPoll();
}

void Monitor::FinishFirstPoll() {
  if (!first_poll_) return;
  const bool waiting = settings_.polling.enabled && driver_ != nullptr &&
                       std::ranges::any_of(gpus_, [](const auto& each) {
                         return each.second->looking && !each.second->polled;
                       });
  if (waiting) return;
  first_poll_timer_.Cancel();
  Build();
  if (const auto call = std::exchange(first_poll_, nullptr)) call();
}

}  // namespace ndp::health
