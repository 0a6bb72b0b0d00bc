// Keeps a session with the NVIDIA driver open and the inventory current. Lives on the loop; every
// driver call is made by the QueryWorker. Nothing here ends the program: no driver means waiting
// and trying again.
//
// Two ways to look again: Rescan reads in the living session; Refresh closes it to zero references
// and opens a new one, since a session from before a re-partition goes on returning what is gone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "inventory/inventory.h"
#include "inventory/links.h"
#include "inventory/platform.h"
#include "node/change_signs.h"
#include "nvml/driver.h"
#include "nvml/query_worker.h"
#include "os/event_loop.h"
#include "os/host_fs.h"

namespace ndp::node {

class DriverSession {
 public:
  struct Deps {
    os::EventLoop& loop;
    const Clock& clock;
    inventory::PlatformLoader& loader;
    nvml::QueryWorker& worker;
    const os::HostFs& host;     // /proc and /sys
    const os::HostFs& devices;  // /dev
    // Whether the next session of `loader` holds all GPUs, or those alone that are looked up.
    std::function<void(bool all)> attaching;
  };
  struct Events {
    // A scan is done, or a GPU that was too slow for it has answered. Links are not in it.
    std::function<void(const std::shared_ptr<nvml::Driver>&, inventory::Inventory)> inventory;
    // GPUs came or went: until the scan is done an index may mean another GPU.
    std::function<void()> index_in_doubt;
    // The driver cannot be opened or asked; it is tried again.
    std::function<void(const Error&)> failed;
    // The session is about to close: everybody lets go of the driver now.
    std::function<void()> closing;
    std::function<void(std::shared_ptr<const inventory::LinkMatrix>)> links;
  };

  DriverSession(Deps deps, Duration rescan_interval, Events events);
  ~DriverSession();
  DriverSession(const DriverSession&) = delete;
  DriverSession& operator=(const DriverSession&) = delete;

  void Start();
  void Rescan(const std::string& why);
  void Refresh(const std::string& why);
  // A device node came or went: look whether that means a refresh, or a driver to open.
  void OnDeviceNodes();
  // Lets go of the driver until Resume (`ndp release`).
  void Release();
  void Resume();
  // These GPUs (PCI bus ids) are no longer held open, all others are: what the last scan knew of
  // them holds, and they are not asked in this session.
  void LetGo(std::set<std::string> gpus);
  // Reads the link matrix of the last inventory, GPU by GPU; a GPU that hangs is passed over. Goes
  // on with a reading of the same GPUs that is under way.
  void ReadLinks();
  void set_rescan_interval(Duration interval);
  // From the QueryWorker: a call of this key hangs, or has come back.
  void OnSetAside(const std::string& key, bool set_aside);

  bool open() const { return driver_ != nullptr; }
  bool released() const { return released_since_.has_value(); }
  std::optional<WallTime> released_since() const { return released_since_; }
  // No reference to the driver is left, ours or anybody's.
  bool closed() const { return driver_ == nullptr && last_.expired(); }

 private:
  // What the scan has heard of an index so far.
  using Slot = std::optional<nvml::Reply<nvml::Gpu>>;

  void Open();
  void OnOpened(Result<std::shared_ptr<nvml::Driver>> opened);
  void Close();
  void AwaitClosed(int looks_left);
  void Scan();
  void OnCount(std::uint64_t scan, const nvml::Reply<unsigned>& count,
               const nvml::Reply<nvml::DriverInfo>& info);
  void OnGpu(std::uint64_t scan, unsigned index, nvml::Reply<nvml::Gpu> reply);
  std::vector<nvml::Gpu> Matching(std::vector<nvml::Gpu> known, std::size_t count) const;
  std::vector<nvml::Reply<nvml::Gpu>> Scanned(bool* guessed) const;
  void Remember(const std::vector<nvml::Reply<nvml::Gpu>>& gpus);
  void Emit();
  void RetryLater(const Error& why);
  void ReadNextLinks(std::uint64_t round, std::size_t at);
  // Drops a reference away from the loop: the last one calls into the driver.
  void DropOnWorker(std::shared_ptr<nvml::Driver> driver);

  Deps deps_;
  Duration rescan_interval_;
  Events events_;

  std::shared_ptr<nvml::Driver> driver_;
  std::weak_ptr<nvml::Driver> last_;
  bool opening_ = false;
  bool closing_ = false;
  std::optional<WallTime> released_since_;
  int failures_ = 0;
  ChangeSigns signs_;

  std::uint64_t scan_ = 0;  // of the scan whose answers count
  bool scanning_ = false;
  bool scanned_ = false;  // this session has found who is there
  bool rescan_wanted_ = false;
  nvml::DriverInfo info_;
  std::vector<Slot> slots_;
  std::vector<nvml::Gpu> known_;  // as last seen, by the index of then; those that went among them
  std::set<std::string> let_go_;  // wanted
  std::set<std::string> apart_;   // in the session that is open
  bool order_known_ = false;      // at the last scan: which GPU has which index
  bool links_partial_ = false;    // read while some were apart

  std::uint64_t links_round_ = 0;
  bool reading_links_ = false;
  std::size_t links_at_ = 0;
  std::vector<inventory::LinkTarget> link_targets_;
  std::vector<inventory::GpuLinks> links_;
  std::vector<inventory::LinkTarget> targets_;  // GPUs of the last inventory

  os::EventLoop::Handle rescan_timer_;
  os::EventLoop::Handle scan_deadline_;
  os::EventLoop::Handle retry_timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ndp::node
