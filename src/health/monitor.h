// Watches the health of all GPUs: events, polls, probes of recovery, fences and the driver itself,
// and gives out a new HealthBoard whenever a verdict changes. Owned by the node, on the loop's
// thread; every driver call is made by the event watcher's thread or by the QueryWorker, under the
// GPU's PCI bus id as its key. Destroying it waits for nobody.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "config/settings.h"
#include "health/announcer.h"
#include "health/back_off.h"
#include "health/board.h"
#include "health/event_watcher.h"
#include "health/examination.h"
#include "health/fence_file.h"
#include "health/fences.h"
#include "health/gpu_health.h"
#include "health/state_file.h"
#include "health/xid.h"
#include "inventory/inventory.h"
#include "metrics/registry.h"
#include "nvml/query_worker.h"
#include "os/event_loop.h"
#include "os/host_fs.h"

namespace ndp::health {

// How a GPU is used, as far as its health depends on that.
struct GpuUse {
  bool shared = false;  // it has replicas
  bool mps = false;     // a running MPS daemon of ours serves it
  bool operator==(const GpuUse&) const = default;
};

class Monitor {
 public:
  struct Deps {
    os::EventLoop& loop;
    const Clock& clock;
    nvml::QueryWorker& worker;
    const os::HostFs& host;  // /proc and /sys
    metrics::Registry& metrics;
    // Looks at a GPU that was let go, in a session of its own; on a worker thread, blocks. Null:
    // no GPU is ever let go.
    std::function<Examination(const std::string& pci_bus_id, Depth)> examine_apart = nullptr;
  };
  struct Callbacks {
    // Some verdict, reason or warning changed; or, at most once a second, only counts.
    std::function<void(std::shared_ptr<const HealthBoard>)> board;
    // The session answers as if the driver were gone, or its enumeration is out of date.
    std::function<void(const std::string& why)> refresh;
    // The session is to hold these GPUs (PCI bus ids) no longer, all others again: they wait for a
    // reset, which an open session would block. With health.recovery.releaseFaultyGpu.
    std::function<void(std::set<std::string>)> let_go = nullptr;
  };
  struct Timing {
    std::chrono::milliseconds event_slice = std::chrono::seconds(5);
    Duration second_action_read = std::chrono::seconds(2);
    Duration first_poll = std::chrono::seconds(2);
    Duration first_backoff = std::chrono::seconds(1);
    Duration longest_backoff = std::chrono::seconds(60);
    Duration counts_interval = std::chrono::seconds(1);
  };

  // Reads the state file and the fences. The callbacks may be called from within.
  Monitor(Deps deps, const config::Health& settings, Callbacks callbacks, Timing timing);
  Monitor(Deps deps, const config::Health& settings, Callbacks callbacks)
      : Monitor(std::move(deps), settings, std::move(callbacks), Timing()) {}
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // The watch of the fences' folder; null without a fences file.
  const os::DirWatch* fence_folder() const {
    return fence_file_ ? &fence_file_->folder() : nullptr;
  }

  // After each scan, with what it really found: a GPU that is missing from it is absent, unless the
  // scan has broken ones.
  void OnInventory(std::shared_ptr<const inventory::Inventory> inventory,
                   std::shared_ptr<nvml::Driver> driver);
  // The driver cannot be opened or asked. Devices become Unhealthy after the grace period.
  void OnDriverFailed(const std::string& why);
  // The session is about to close (a refresh, `ndp release`): drops every reference to the driver,
  // the event thread's within its slice. Verdicts stay as they are.
  void LetGo();
  // From the QueryWorker: a call of this key hangs, or has come back.
  void OnSetAside(const std::string& key, bool set_aside);
  // By UUID: GPUs that the settings take out of the plugin's hands. They are not looked at, have no
  // verdict and are not missed where they are absent; one that comes back in is looked at at once.
  void SetExcluded(std::set<std::string> uuids);
  // By GPU UUID; others are not shared.
  void SetUses(std::map<std::string, GpuUse> uses);
  void Configure(const config::Health& settings);

  // Calls `done` when every GPU has been polled once, at the latest after 2 s: before the first
  // device list. At once where polls are off.
  void FirstPoll(std::function<void()> done);

  // By hand: a GPU by UUID (also of one of its MIG devices), index or PCI address, or "all".
  // Returns the UUIDs of the GPUs cleared; kNotFound names what there is.
  Result<std::vector<std::string>> Clear(std::string_view gpu);

  std::shared_ptr<const HealthBoard> board() const { return board_; }

 private:
  struct Gpu {
    explicit Gpu(GpuHealth gpu_health) : health(std::move(gpu_health)) {}
    inventory::Gpu seen;  // as last scanned
    GpuHealth health;
    bool present = false;
    bool excluded = false;
    bool apart = false;  // let go until it is Healthy again
    bool lost = false;   // at the last look: kept out of the event set
    bool looking = false;
    bool reading_action = false;
    bool polled = false;
    std::optional<nvml::Failure> failure;  // of the last look
    os::EventLoop::Handle second_read;
    bool usable() const { return present && !excluded && !seen.pci_bus_id().empty(); }
  };
  enum class Why { kPoll, kWaitFailed };

  Gpu& Track(const std::string& uuid);
  Gpu* FindPci(std::string_view pci_bus_id);
  // Of a GPU as an operator names it, also of one that is gone but still shown. What names none is
  // returned as it is.
  std::string UuidOf(std::string_view name) const;
  void ResolveFences();
  void CheckModule();
  void ApplyPresence(const inventory::Inventory& inventory);
  void OpenState();
  void RestoreState();

  void LetFaultyGo();
  void WatchEvents();
  std::vector<std::string> Watchable() const;
  void OnEvents(const std::vector<EventCount>& events, std::uint64_t dropped);
  void OnEvent(const EventCount& event);
  void OnRegistered(const std::map<std::string, nvml::Failure>& not_registered);
  void OnWaitFailed(const nvml::Failure& failure);

  void CheckWatcher();
  void PollAll(Why why);
  void Look(Gpu& gpu, Why why);
  void OnLooked(const std::string& uuid, Why why, const Examination& examination);
  void ReadAction(Gpu& gpu);
  void OnAction(const std::string& uuid, const nvml::Reply<int>& action);
  void LookWhereDue();
  void ArmLooks();
  void FinishFirstPoll();

  void NoteTrouble(const std::string& why);
  void EndTrouble();
  void AskRefresh(const std::string& why);
  bool AllFail() const;

  void ApplyClearFile();
  void BuildSoon();
  void Build();
  // Where something has changed; otherwise at most once a second.
  void Save(bool at_once);
  // Runs on the worker under the GPU's key; the answer counts only in this session.
  template <typename Ask, typename Answer>
  bool Query(const Gpu& gpu, Ask ask, Answer answer);

  Deps deps_;
  config::Health settings_;
  Callbacks callbacks_;
  Timing timing_;
  XidTable xids_;
  Announcer announcer_;

  std::shared_ptr<nvml::Driver> driver_;
  std::uint64_t session_ = 0;
  std::shared_ptr<const inventory::Inventory> inventory_;
  std::map<std::string, std::unique_ptr<Gpu>> gpus_;  // by UUID
  std::map<std::string, GpuUse> uses_;
  std::set<std::string> excluded_;
  std::set<std::string> let_go_;  // PCI bus ids, as last told

  EventWatcher watcher_;
  std::vector<std::string> watched_;
  BackOff back_off_;

  DriverHealth trouble_;
  bool told_overdue_ = false;      // of events: once, and when they come again
  bool trouble_in_looks_ = false;  // ends with a good look, not with a good scan
  std::optional<MonoTime> last_refresh_;

  FenceBook fences_;
  std::set<int> fences_told_;  // lines of those that name no GPU
  struct PendingClear {
    std::vector<std::string> gpus;
    WallTime written;
  };
  std::optional<PendingClear> clear_file_;

  std::optional<StateFile> state_file_;  // none: memory only
  SavedState saved_;                     // as read at start
  MonoTime saved_until_{};
  std::optional<MonoTime> last_save_;
  bool state_warned_ = false;
  int lock_held_ = 0;  // how often in a row by somebody else

  std::function<void()> first_poll_;
  std::shared_ptr<const HealthBoard> board_ = std::make_shared<HealthBoard>();
  bool build_posted_ = false;

  os::EventLoop::Handle poll_timer_;
  os::EventLoop::Handle look_timer_;
  os::EventLoop::Handle watch_timer_;
  os::EventLoop::Handle grace_timer_;
  os::EventLoop::Handle fence_timer_;
  os::EventLoop::Handle counts_timer_;
  os::EventLoop::Handle save_timer_;
  os::EventLoop::Handle first_poll_timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::optional<FenceFile> fence_file_;  // last: calls back while it is built
};

}  // namespace ndp::health
