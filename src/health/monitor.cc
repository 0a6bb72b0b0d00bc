// What is known, and the board that follows from it. monitor_driver.cc asks the driver.
#include "health/monitor.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "os/file.h"

namespace ndp::health {
namespace {

constexpr Duration kSaveRetry = std::chrono::milliseconds(200);
// Another instance holds the lock for a moment; one that has stopped holds it for ever.
constexpr int kLockHeldLong = 25;
constexpr Duration kLateSaveRetry = std::chrono::seconds(10);
constexpr Duration kSavePause = std::chrono::seconds(1);
constexpr std::string_view kBootId = "/proc/sys/kernel/random/boot_id";
constexpr std::string_view kModule = "/sys/module/nvidia";

// The folder's inode: sysfs gives a new one when the module is loaded anew. Its times say nothing,
// since they are those of the kernel's inode cache.
std::string ModuleIdentity(const os::HostFs& host) {
  const auto identity = os::Identify(host.Path(kModule));
  return identity.ok() ? fmt::format("{}:{}", identity->device, identity->inode) : std::string();
}

}  // namespace

Monitor::Monitor(Deps deps, const config::Health& settings, Callbacks callbacks, Timing timing)
    : deps_(deps),
      settings_(settings),
      callbacks_(std::move(callbacks)),
      timing_(timing),
      xids_(settings.xids),
      announcer_(deps.clock, deps.metrics),
      watcher_(deps.loop, deps.clock,
               {.events = [this](const auto& events, std::uint64_t n) { OnEvents(events, n); },
                .registered = [this](const auto& missing) { OnRegistered(missing); },
                .failed = [this](const nvml::Failure& failure) { OnWaitFailed(failure); }},
               timing.event_slice),
      back_off_(timing.first_backoff, timing.longest_backoff) {
  RestoreState();
  Configure(settings);
}

Monitor::~Monitor() {
  *alive_ = false;
  Save(true);
}

void Monitor::Configure(const config::Health& settings) {
  const bool new_fences = (!fence_file_ && !settings.fences_file.empty()) ||
                          settings.fences_file != settings_.fences_file;
  const bool new_state = settings.state_file != settings_.state_file ||
                         settings.recovery.enabled != settings_.recovery.enabled;
  const XidTable before = std::exchange(xids_, XidTable(settings.xids));
  settings_ = settings;
  for (auto& [uuid, gpu] : gpus_) gpu->health.Configure(settings);
  if (new_state) OpenState();  // what is known now is written there
  poll_timer_.Cancel();
  if (settings.polling.enabled) {
    poll_timer_ = deps_.loop.Every(settings.polling.interval, [this] { PollAll(Why::kPoll); });
  }
  if (new_fences && fence_file_) {
    fence_file_.reset();
    fences_.Replace({}, deps_.clock.Wall());
  }
  if (new_fences && !settings.fences_file.empty()) {
    fence_file_.emplace(
        deps_.loop, settings.fences_file,
        FenceFile::Callbacks{.fences =
                                 [this](std::vector<Fence> fences) {
                                   fences_.Replace(std::move(fences), deps_.clock.Wall());
                                   fences_told_.clear();
                                   ResolveFences();
                                   BuildSoon();
                                 },
                             .broken =
                                 [this](const Error& error) {
                                   announcer_.Warn("fences " + error.message(),
                                                   "fences: the last good ones stay in force",
                                                   error.message());
                                 },
                             .clear =
                                 [this](std::vector<std::string> gpus, WallTime written) {
                                   clear_file_ = {std::move(gpus), written};
                                   if (inventory_ != nullptr) ApplyClearFile();
                                 }});
  }
  // A reload that changes nothing here leaves the event set alone.
  if (before.watches_events() != xids_.watches_events() ||
      before.all_disabled() != xids_.all_disabled()) {
    WatchEvents();
  }
  BuildSoon();
}

void Monitor::OpenState() {
  state_file_.reset();
  state_warned_ = false;
  saved_until_ = {};
  if (settings_.state_file.empty() || !settings_.recovery.enabled) return;
  const auto boot = deps_.host.Read(kBootId);
  saved_.boot_id = boot.ok() ? std::string(Trim(*boot)) : std::string();
  if (saved_.boot_id.empty()) {
    announcer_.Warn("state", "health state is kept in memory only",
                    boot.ok() ? "empty boot id" : boot.error().message());
    return;
  }
  state_file_.emplace(settings_.state_file, saved_.boot_id);
}

void Monitor::RestoreState() {
  OpenState();
  if (!state_file_) return;
  auto state = state_file_->Load();
  if (!state.ok()) {
    state_warned_ = true;
    announcer_.Warn("state", "health state cannot be read: starting afresh",
                    state.error().message());
    return;
  }
  saved_ = *std::move(state);
  fences_.Remember(saved_.fences);
  for (const auto& [uuid, record] : saved_.gpus) {
    saved_until_ = std::max(saved_until_, record.updated);
    if (!record.healthy()) Track(uuid);
  }
}

Monitor::Gpu& Monitor::Track(const std::string& uuid) {
  auto& gpu = gpus_[uuid];
  if (gpu == nullptr) {
    gpu = std::make_unique<Gpu>(GpuHealth(deps_.clock, settings_));
    gpu->seen.nvml.uuid = uuid;
    gpu->excluded = excluded_.contains(uuid);
    if (const auto saved = saved_.gpus.find(uuid); saved != saved_.gpus.end()) {
      gpu->health.Restore(saved->second);
    }
  }
  return *gpu;
}

Monitor::Gpu* Monitor::FindPci(std::string_view pci_bus_id) {
  for (auto& [uuid, gpu] : gpus_) {
    if (gpu->usable() && gpu->seen.pci_bus_id() == pci_bus_id) return gpu.get();
  }
  return nullptr;
}

void Monitor::OnInventory(std::shared_ptr<const inventory::Inventory> inventory,
                          std::shared_ptr<nvml::Driver> driver) {
  const bool new_session = driver != driver_;
  if (new_session) LetGo();
  driver_ = std::move(driver);
  inventory_ = std::move(inventory);
  CheckModule();
  CheckWatcher();
  ApplyPresence(*inventory_);
  ResolveFences();
  ApplyClearFile();
  // Every GPU answering with an error is trouble of the driver, not of all GPUs at once.
  if (inventory_->gpus.empty() && !inventory_->broken.empty()) {
    NoteTrouble(inventory_->broken.front().reason);
  } else if (!trouble_in_looks_) {
    EndTrouble();
  }
  // Where a back-off is running the set is made anew at its end.
  if (driver_ != nullptr && (new_session || (!watch_timer_ && Watchable() != watched_))) {
    WatchEvents();
  }
  for (auto& [uuid, gpu] : gpus_) {
    if (!settings_.polling.enabled && !trouble_in_looks_) break;
    if (new_session || !gpu->polled) {
      Look(*gpu, Why::kPoll);
    }
  }
  Build();
}

void Monitor::ResolveFences() {
  if (inventory_ == nullptr) return;
  std::set<int> unknown_lines;
  for (const Fence& unknown : fences_.Resolve(*inventory_)) {
    if (gpus_.contains(unknown.uuid)) continue;  // gone for now
    unknown_lines.insert(unknown.line);
    if (fences_told_.contains(unknown.line)) continue;
    // One file may serve many nodes, by UUIDs alone.
    announcer_.UnknownFence(fmt::format("{}: line {}", settings_.fences_file, unknown.line),
                            unknown.uuid);
  }
  fences_told_ = std::move(unknown_lines);
}

void Monitor::CheckModule() {
  const std::string now = ModuleIdentity(deps_.host);
  if (now.empty()) return;
  if (!saved_.module.empty() && saved_.module != now) {
    for (auto& [uuid, gpu] : gpus_) gpu->health.OnModuleReloaded();
  }
  saved_.module = now;
}

void Monitor::ApplyPresence(const inventory::Inventory& inventory) {
  std::set<std::string> there;
  for (const inventory::Gpu& seen : inventory.gpus) {
    there.insert(seen.uuid());
    Gpu& gpu = Track(seen.uuid());
    gpu.seen = seen;
    gpu.present = true;
    gpu.health.OnPresent();
  }
  for (auto& [uuid, gpu] : gpus_) {
    if (there.contains(uuid)) continue;
    if (inventory.broken.empty()) {
      gpu->present = false;
      if (!gpu->excluded) gpu->health.OnAbsent();
    } else if (gpu->usable()) {
      // Counted but not described: a look tells whether it is lost.
      Look(*gpu, Why::kWaitFailed);
    }
  }
}

void Monitor::OnDriverFailed(const std::string& why) {
  LetGo();
  NoteTrouble(why);
}

void Monitor::LetGo() {
  ++session_;
  watcher_.Stop();
  watched_.clear();
  watch_timer_.Cancel();
  driver_.reset();
  for (auto& [uuid, gpu] : gpus_) {
    gpu->looking = false;
    gpu->reading_action = false;
    gpu->second_read.Cancel();
  }
  look_timer_.Cancel();
  FinishFirstPoll();
}

void Monitor::NoteTrouble(const std::string& why) {
  if (!trouble_.available && trouble_.reason == why) return;
  if (trouble_.available) {
    trouble_ = {
        .available = false, .reason = why, .since = deps_.clock.Wall(), .grace_over = false};
    grace_timer_ = deps_.loop.After(settings_.grace, [this] {
      trouble_.grace_over = true;
      announcer_.Warn("driver", "the driver cannot be reached: all devices are Unhealthy",
                      trouble_.reason);
      Build();
    });
    announcer_.Warn("driver trouble", "trouble with the driver", why);
  } else {
    trouble_.reason = why;
  }
  BuildSoon();
}

void Monitor::EndTrouble() {
  trouble_in_looks_ = false;
  if (trouble_.available) return;
  grace_timer_.Cancel();
  trouble_ = {};
  announcer_.Note("", "the driver answers again");
  BuildSoon();
}

void Monitor::AskRefresh(const std::string& why) {
  // A session that is opened in vain every time must not become a busy loop.
  constexpr Duration kPause = std::chrono::seconds(10);
  const MonoTime now = deps_.clock.Now();
  if (last_refresh_ && now - *last_refresh_ < kPause) return;
  last_refresh_ = now;
  // The node may let go of the driver at once, so not from within a walk over the GPUs.
  deps_.loop.Post([this, alive = alive_, why] {
    if (*alive) callbacks_.refresh(why);
  });
}

void Monitor::SetExcluded(std::set<std::string> uuids) {
  if (uuids == excluded_) return;
  excluded_ = std::move(uuids);
  for (auto& [uuid, gpu] : gpus_) {
    const bool was = std::exchange(gpu->excluded, excluded_.contains(uuid));
    if (!was || gpu->excluded) continue;
    if (gpu->present && settings_.polling.enabled) {
      Look(*gpu, Why::kPoll);
    } else if (!gpu->present && inventory_ != nullptr) {
      gpu->health.OnAbsent();
    }
  }
  if (driver_ != nullptr && !watch_timer_ && Watchable() != watched_) WatchEvents();
  BuildSoon();
}

void Monitor::SetUses(std::map<std::string, GpuUse> uses) { uses_ = std::move(uses); }

std::string Monitor::UuidOf(std::string_view name) const {
  std::string uuid = inventory_ != nullptr ? ResolveGpu(name, *inventory_) : std::string();
  if (!uuid.empty()) return uuid;
  inventory::Inventory shown;
  for (const auto& [gone, gpu] : gpus_) {
    if (!gpu->seen.pci_bus_id().empty()) shown.gpus.push_back(gpu->seen);
  }
  uuid = ResolveGpu(name, shown);
  return uuid.empty() ? std::string(name) : uuid;
}

Result<std::vector<std::string>> Monitor::Clear(std::string_view name) {
  std::vector<std::string> cleared;
  const std::string uuid = UuidOf(name);
  for (auto& [gpu_uuid, gpu] : gpus_) {
    if (name != "all" && gpu_uuid != uuid && !gpu->seen.Has(uuid)) continue;
    gpu->health.Clear();
    // A GPU that is not there has nothing to be healthy with.
    if (!gpu->present && inventory_ != nullptr) gpu->health.OnAbsent();
    announcer_.Note(gpu_uuid, "cleared by hand");
    cleared.push_back(gpu_uuid);
  }
  if (cleared.empty() && name != "all") {
    return Error(Code::kNotFound,
                 fmt::format("no GPU '{}': give a UUID, an index, a PCI address or 'all'", name));
  }
  Build();
  return cleared;
}

void Monitor::ApplyClearFile() {
  if (!clear_file_) return;
  const PendingClear clear = *std::exchange(clear_file_, std::nullopt);
  std::set<std::string> named;
  for (const std::string& name : clear.gpus) named.insert(UuidOf(name));
  for (auto& [uuid, gpu] : gpus_) {
    if (!clear.gpus.empty() && !named.contains(uuid)) continue;
    if (gpu->health.healthy()) continue;
    const WallTime last_fault =
        deps_.clock.Wall() - (deps_.clock.Now() - gpu->health.record().last_fault);
    // The file stays where it is: over a restart it means what it meant when it was written.
    if (last_fault > clear.written) continue;
    gpu->health.Clear();
    announcer_.Note(uuid, "cleared by the clear file");
  }
  BuildSoon();
}

// A GPU that needs a reset is let go, and taken back when it is Healthy: not with the reset, since
// nobody knows whether it was the last.
void Monitor::LetFaultyGo() {
  if (deps_.examine_apart == nullptr || !callbacks_.let_go) return;
  std::set<std::string> let_go;
  for (auto& [uuid, gpu] : gpus_) {
    const GpuRecord& record = gpu->health.record();
    const bool wanted = settings_.recovery.release_faulty_gpu && settings_.recovery.enabled;
    gpu->apart =
        wanted && gpu->usable() && (record.awaits_reset || (gpu->apart && !gpu->health.healthy()));
    if (gpu->apart) let_go.insert(gpu->seen.pci_bus_id());
  }
  if (let_go == let_go_) return;
  let_go_ = std::move(let_go);
  if (driver_ != nullptr && !watch_timer_ && Watchable() != watched_) WatchEvents();
  // The node closes the session for it, so not from within a walk over the GPUs.
  deps_.loop.Post([this, alive = alive_] {
    if (*alive) callbacks_.let_go(let_go_);
  });
}

void Monitor::BuildSoon() {
  if (std::exchange(build_posted_, true)) return;
  deps_.loop.Post([this, alive = alive_] {
    if (*alive) Build();
  });
}

void Monitor::Build() {
  build_posted_ = false;
  const WallTime now = deps_.clock.Wall();
  std::vector<GpuState> states;
  for (auto& [uuid, gpu] : gpus_) {
    if (gpu->excluded) continue;
    states.push_back({.gpu = &gpu->seen,
                      .record = &gpu->health.record(),
                      .warnings = gpu->health.warnings(),
                      .after_reset = gpu->health.AfterReset(),
                      .hung = deps_.worker.set_aside(gpu->seen.pci_bus_id())});
    for (const std::string& note : gpu->health.TakeNotes()) announcer_.Note(uuid, note);
  }
  auto board = std::make_shared<HealthBoard>(BuildBoard(states, fences_.Active(now), trouble_));
  const bool news = !board->SameVerdicts(*board_);
  if (!(*board == *board_)) {
    announcer_.Verdicts(*board_, *board);
    if (news) announcer_.Gauges(*board);
    board_ = std::move(board);
    if (news) {
      counts_timer_.Cancel();
      callbacks_.board(board_);
    } else if (!counts_timer_) {
      counts_timer_ = deps_.loop.After(timing_.counts_interval, [this] {
        counts_timer_.Cancel();
        callbacks_.board(board_);
      });
    }
  }
  if (const auto expiry = fences_.NextExpiry(now)) {
    fence_timer_ = deps_.loop.After(*expiry - now, [this] { Build(); });
  }
  LetFaultyGo();
  Save(news);
  ArmLooks();
}

void Monitor::Save(bool at_once) {
  if (!state_file_) return;
  MonoTime latest = saved_until_;
  for (const auto& [uuid, gpu] : gpus_) latest = std::max(latest, gpu->health.record().updated);
  if (latest == saved_until_ && fences_.remembered() == saved_.fences) return;
  // Verdicts are written at once, counts in a storm once a second.
  const MonoTime now = deps_.clock.Now();
  if (!at_once && last_save_ && now - *last_save_ < kSavePause) {
    if (!save_timer_) save_timer_ = deps_.loop.After(kSavePause, [this] { Save(true); });
    return;
  }
  last_save_ = now;
  save_timer_.Cancel();
  SavedState state{.boot_id = saved_.boot_id,
                   .module = saved_.module,
                   .gpus = {},
                   .fences = fences_.remembered()};
  for (const auto& [uuid, gpu] : gpus_) {
    if (gpu->health.record().updated != MonoTime{}) state.gpus[uuid] = gpu->health.record();
  }
  const Status stored = state_file_->Store(state);
  if (stored.ok() || stored.error().code() != Code::kUnavailable) saved_.fences = state.fences;
  if (stored.ok()) {
    saved_until_ = latest;
    state_warned_ = false;
    lock_held_ = 0;
  } else if (stored.error().code() == Code::kUnavailable) {
    if (++lock_held_ == kLockHeldLong) {
      announcer_.Warn("state lock", "health state cannot be written yet: trying again",
                      stored.error().message());
    }
    save_timer_ = deps_.loop.After(lock_held_ < kLockHeldLong ? kSaveRetry : kLateSaveRetry,
                                   [this] { Save(true); });
  } else {
    saved_until_ = latest;  // tried again with the next change, not with every look
    if (!std::exchange(state_warned_, true)) {
      log::Warning("health state cannot be written: kept in memory only",
                   {{"file", settings_.state_file}, {"error", stored.error().message()}});
    }
  }
}

}  // namespace ndp::health
