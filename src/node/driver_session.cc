#include "node/driver_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/log.h"
#include "inventory/discover.h"

namespace ndp::node {
namespace {

using namespace std::chrono_literals;

constexpr const char* kDriverKey = "driver";
constexpr const char* kLinksPrefix = "links ";
// A scan waits at most this long for any GPU; late answers count when they come.
constexpr Duration kScanPatience = 2s;
// The event wait comes back every 5 s; what is still out after that hangs.
constexpr Duration kCloseLook = 50ms;
constexpr int kCloseLooks = 140;

Duration RetryDelay(int failures) {
  return std::min<Duration>(500ms * (1 << std::min(failures, 6)), 10s);
}

}  // namespace

DriverSession::DriverSession(Deps deps, Duration rescan_interval, Events events)
    : deps_(std::move(deps)), rescan_interval_(rescan_interval), events_(std::move(events)) {}

DriverSession::~DriverSession() {
  *alive_ = false;
  DropOnWorker(std::move(driver_));
}

void DriverSession::Start() {
  set_rescan_interval(rescan_interval_);
  Open();
}

void DriverSession::set_rescan_interval(Duration interval) {
  rescan_interval_ = interval;
  rescan_timer_ = deps_.loop.Every(interval, [this] { Rescan("interval"); });
}

void DriverSession::Open() {
  if (opening_ || closing_ || released() || driver_ != nullptr) return;
  retry_timer_.Cancel();
  // Only a scan of all tells which GPU has which index.
  apart_ = known_.empty() ? std::set<std::string>() : let_go_;
  deps_.attaching(apart_.empty());
  opening_ = deps_.worker.Run(kDriverKey, [this, alive = alive_, loader = &deps_.loader] {
    auto opened = loader->Open();
    return [this, alive, opened = std::move(opened)]() mutable {
      if (*alive) OnOpened(std::move(opened));
    };
  });
  // Set aside: nvmlInit hangs. It is asked for again when it has come back.
  if (!opening_)
    RetryLater(Error(Code::kDeadlineExceeded, "a call to open the driver does not return"));
}

void DriverSession::OnOpened(Result<std::shared_ptr<nvml::Driver>> opened) {
  opening_ = false;
  if (!opened) return RetryLater(opened.error());
  if (released()) return DropOnWorker(*std::move(opened));
  failures_ = 0;
  driver_ = *std::move(opened);
  last_ = driver_;
  scanned_ = false;
  signs_ = ReadChangeSigns(deps_.host, deps_.devices, driver_->library());
  if (driver_->library().empty()) {
    log::Info("no NVML here: this system's GPU is used without it");
  } else {
    log::Info("driver session opened", {{"library", driver_->library().string()}});
  }
  Scan();
}

void DriverSession::RetryLater(const Error& why) {
  events_.failed(why);
  retry_timer_ = deps_.loop.After(RetryDelay(failures_++), [this] { Open(); });
}

void DriverSession::Rescan(const std::string& why) {
  if (released() || closing_) return;
  if (driver_ == nullptr) return Open();
  const ChangeSigns now = ReadChangeSigns(deps_.host, deps_.devices, driver_->library());
  if (const std::string changed = signs_.Difference(now); !changed.empty()) {
    // Closing the session takes as long as a wait for events, and an answer by index none.
    if (!signs_.SameGpus(now)) events_.index_in_doubt();
    return Refresh(changed + " changed");
  }
  log::Debug("rescan", {{"why", why}});
  Scan();
}

void DriverSession::OnDeviceNodes() {
  if (driver_ == nullptr) {
    failures_ = 0;
    return Open();
  }
  Rescan("device nodes");
}

void DriverSession::Refresh(const std::string& why) {
  if (closing_ || released()) return;
  if (driver_ == nullptr) return Open();
  log::Info("driver session refreshed", {{"why", why}});
  Close();
}

void DriverSession::LetGo(std::set<std::string> gpus) {
  if (gpus == let_go_) return;
  let_go_ = std::move(gpus);
  if (driver_ == nullptr || let_go_ == apart_) return;
  Refresh(let_go_.empty() ? "no GPU waits for a reset any more"
                          : fmt::format("let go for a reset: {}", fmt::join(let_go_, ", ")));
}

void DriverSession::Close() {
  closing_ = true;
  ++scan_;  // answers of the old session no longer count
  scanning_ = false;
  scan_deadline_.Cancel();
  ++links_round_;
  reading_links_ = false;
  events_.closing();
  DropOnWorker(std::move(driver_));
  AwaitClosed(kCloseLooks);
}

void DriverSession::AwaitClosed(int looks_left) {
  if (!last_.expired() && looks_left > 0) {
    retry_timer_ =
        deps_.loop.After(kCloseLook, [this, looks_left] { AwaitClosed(looks_left - 1); });
    return;
  }
  if (!last_.expired()) {
    log::Warning("a call hangs in the old driver session: opening a new one beside it");
  }
  closing_ = false;
  if (released()) {
    log::Info("driver released");
  } else {
    Open();
  }
}

void DriverSession::Release() {
  if (released()) return;
  released_since_ = deps_.clock.Wall();
  retry_timer_.Cancel();
  if (driver_ != nullptr) Close();
}

void DriverSession::Resume() {
  if (!released()) return;
  released_since_.reset();
  log::Info("driver resumed");
  if (!closing_) Open();
}

void DriverSession::DropOnWorker(std::shared_ptr<nvml::Driver> driver) {
  if (driver == nullptr) return;
  // Where even the worker's queue is stuck the reference is leaked rather than dropped here.
  auto holder = std::make_shared<std::shared_ptr<nvml::Driver>>(std::move(driver));
  const bool queued = deps_.worker.Run(kDriverKey, [holder] {
    holder->reset();
    return [] {};
  });
  if (!queued) new std::shared_ptr<std::shared_ptr<nvml::Driver>>(holder);
}

void DriverSession::Scan() {
  if (scanning_) {
    rescan_wanted_ = true;
    return;
  }
  scanning_ = true;
  rescan_wanted_ = false;
  const std::uint64_t scan = ++scan_;
  const bool queued = deps_.worker.Run(kDriverKey, [this, alive = alive_, scan, driver = driver_] {
    auto count = driver->DeviceCount();
    auto info = driver->Info();
    return [this, alive, scan, count = std::move(count), info = std::move(info)] {
      if (*alive && scan == scan_) OnCount(scan, count, info);
    };
  });
  if (!queued) scanning_ = false;  // health has set the driver aside already
}

void DriverSession::OnCount(std::uint64_t scan, const nvml::Reply<unsigned>& count,
                            const nvml::Reply<nvml::DriverInfo>& info) {
  if (!count) {
    scanning_ = false;
    events_.failed(count.error().ToError().WithContext("count GPUs"));
    // An answer of "driver gone" never heals within a session.
    if (count.error().driver_gone()) Close();
    return;
  }
  if (info) info_ = *info;
  if (!slots_.empty() && slots_.size() != *count) events_.index_in_doubt();
  slots_.assign(*count, std::nullopt);
  const std::vector<nvml::Gpu> expected = Matching(known_, *count);
  // Where it cannot be told who is who nobody is let go: all are asked.
  order_known_ = !expected.empty();
  if (!order_known_) apart_.clear();
  for (unsigned index = 0; index < slots_.size(); ++index) {
    if (order_known_ && apart_.contains(expected[index].pci_bus_id)) {
      nvml::Gpu known = expected[index];
      known.index = index;
      slots_[index] = std::move(known);
      continue;
    }
    const std::string key =
        expected.empty() ? fmt::format("#{}", index) : expected[index].pci_bus_id;
    const bool queued =
        deps_.worker.Run(key, [this, alive = alive_, scan, index, driver = driver_] {
          auto gpu = driver->ReadGpu(index);
          return [this, alive, scan, index, gpu = std::move(gpu)]() mutable {
            if (*alive && scan == scan_) OnGpu(scan, index, std::move(gpu));
          };
        });
    if (!queued) {
      slots_[index] =
          std::unexpected(nvml::Failure{nvml::kTimeout, "scan", "a call does not return"});
    }
  }
  if (std::ranges::all_of(slots_, &Slot::has_value)) return Emit();
  scan_deadline_ = deps_.loop.After(kScanPatience, [this] {
    log::Warning("a GPU is slow to answer: going on without it");
    Emit();
  });
}

void DriverSession::OnGpu(std::uint64_t /*scan*/, unsigned index, nvml::Reply<nvml::Gpu> reply) {
  slots_[index] = std::move(reply);
  const bool all = std::ranges::all_of(slots_, &Slot::has_value);
  // Late answers, after the deadline, are news of their own.
  if (all || !scan_deadline_) Emit();
}

// So many of the GPUs known, by index: all, or those that are still on the bus. Empty: it cannot be
// told which.
std::vector<nvml::Gpu> DriverSession::Matching(std::vector<nvml::Gpu> known,
                                               std::size_t count) const {
  const auto on_bus = [this](const nvml::Gpu& gpu) {
    return deps_.host.Exists("/sys/bus/pci/devices/" + gpu.pci_bus_id);
  };
  // Without any the bus cannot be seen from here.
  if (std::ranges::any_of(known, on_bus)) std::erase_if(known, std::not_fn(on_bus));
  if (known.size() != count) known.clear();
  return known;
}

// The GPUs of the scan, by index. What is slow is not gone: what was known of it holds, under the
// place that is left for it, since enumerations keep their order. `guessed`: such a place is new.
std::vector<nvml::Reply<nvml::Gpu>> DriverSession::Scanned(bool* guessed) const {
  std::vector<nvml::Gpu> silent = known_;
  std::size_t places = 0;
  for (const Slot& slot : slots_) {
    if (!slot || !*slot) {
      ++places;
    } else {
      std::erase_if(silent, [&](const nvml::Gpu& gpu) { return gpu.uuid == (*slot)->uuid; });
    }
  }
  silent = Matching(std::move(silent), places);
  std::vector<nvml::Reply<nvml::Gpu>> gpus;
  auto next = silent.begin();
  for (unsigned index = 0; index < slots_.size(); ++index) {
    const Slot& slot = slots_[index];
    if (slot && *slot) {
      gpus.push_back(*slot);
      continue;
    }
    std::optional<nvml::Gpu> before;
    if (next != silent.end()) before = std::move(*next++);
    if (slot) {
      gpus.push_back(*slot);
    } else if (before) {
      *guessed = *guessed || before->index != index;
      before->index = index;
      gpus.emplace_back(*std::move(before));
    } else {
      gpus.push_back(std::unexpected(nvml::Failure{nvml::kTimeout, "scan", "no answer yet"}));
    }
  }
  return gpus;
}

void DriverSession::Remember(const std::vector<nvml::Reply<nvml::Gpu>>& gpus) {
  for (const auto& gpu : gpus) {
    if (!gpu) continue;
    std::erase_if(known_, [&](const nvml::Gpu& old) { return old.uuid == gpu->uuid; });
    known_.push_back(*gpu);
  }
  std::ranges::stable_sort(known_, {}, &nvml::Gpu::index);
}

void DriverSession::Emit() {
  scanned_ = true;
  scan_deadline_.Cancel();
  scanning_ = false;
  bool guessed = false;
  const inventory::Scan scan{.driver = info_, .gpus = Scanned(&guessed)};
  Remember(scan.gpus);
  inventory::Inventory inventory =
      inventory::Assemble(deps_.loader.PlatformOf(scan), scan, deps_.host);
  targets_.clear();
  for (const inventory::Gpu& gpu : inventory.gpus)
    targets_.push_back({gpu.uuid(), gpu.pci_bus_id()});
  const bool again = rescan_wanted_;
  events_.inventory(driver_, std::move(inventory));
  if (guessed) events_.index_in_doubt();  // until it has answered
  if (driver_ == nullptr || closing_) return;
  if (order_known_ && apart_ != let_go_) return Refresh("GPUs are to be let go");
  if (links_partial_ && apart_.empty()) ReadLinks();
  if (again) Scan();
}

void DriverSession::ReadLinks() {
  if (driver_ == nullptr) return;
  std::vector<inventory::LinkTarget> targets = targets_;
  // Asking for the links of a GPU that was let go would hold it open.
  std::erase_if(targets, [this](const auto& gpu) { return apart_.contains(gpu.pci_bus_id); });
  // Some hosts take minutes: rescans meanwhile must not begin it anew.
  if (reading_links_ && link_targets_ == targets) return;
  reading_links_ = true;
  links_partial_ = targets.size() != targets_.size();
  link_targets_ = std::move(targets);
  links_.assign(link_targets_.size(), {});
  for (inventory::GpuLinks& links : links_) links.ancestors.assign(link_targets_.size(), -1);
  ReadNextLinks(++links_round_, 0);
}

void DriverSession::ReadNextLinks(std::uint64_t round, std::size_t at) {
  if (round != links_round_ || driver_ == nullptr) return;
  if (at == link_targets_.size()) {
    reading_links_ = false;
    std::vector<std::string> warnings;
    auto matrix = std::make_shared<const inventory::LinkMatrix>(
        inventory::BuildLinkMatrix(link_targets_, links_, &warnings));
    for (const std::string& warning : warnings)
      log::Warning("NVLink counts differ", {{"what", warning}});
    events_.links(std::move(matrix));
    return;
  }
  // A key of its own: minutes of link queries must not hold up the GPU's health polls, nor count
  // against their watchdog.
  const std::string& pci = link_targets_[at].pci_bus_id;
  if (deps_.worker.set_aside(pci)) return ReadNextLinks(round, at + 1);
  auto read = [this, alive = alive_, round, at, driver = driver_, targets = link_targets_] {
    auto links = inventory::ReadGpuLinks(*driver, targets, at);
    return [this, alive, round, at, links = std::move(links)]() mutable {
      if (!*alive || round != links_round_) return;
      links_[at] = std::move(links);
      ReadNextLinks(round, at + 1);
    };
  };
  links_at_ = at;
  if (!deps_.worker.Run(kLinksPrefix + pci, std::move(read))) ReadNextLinks(round, at + 1);
}

void DriverSession::OnSetAside(const std::string& key, bool set_aside) {
  if (key == kDriverKey) {
    // Whatever was asked, its answer will be dropped.
    opening_ = false;
    scanning_ = false;
    if (set_aside && driver_ == nullptr && !closing_ && !released()) {
      RetryLater(Error(Code::kDeadlineExceeded, "opening the driver does not return"));
    } else if (set_aside && driver_ != nullptr && !scanned_) {
      events_.failed(
          Error(Code::kDeadlineExceeded, "asking the driver for its GPUs does not return"));
    } else if (set_aside && driver_ != nullptr) {
      // Who is there is known, and each GPU is looked at on its own.
      log::Warning("asking the driver for its GPUs does not return: no scan until it does");
    } else if (!set_aside) {
      Rescan("a hanging call has returned");
    }
  } else if (set_aside && links_at_ < link_targets_.size() &&
             key == kLinksPrefix + link_targets_[links_at_].pci_bus_id) {
    ReadNextLinks(links_round_, links_at_ + 1);
  }
}

}  // namespace ndp::node
