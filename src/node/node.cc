#include "node/node.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "base/duration.h"
#include "cdi/names.h"
#include "node/examine_apart.h"
#include "node/injection.h"
#include "node/known_gpus.h"
#include "resource/build.h"
#include "resource/mig_layout.h"
#include "resource/selection.h"
#include "web/address.h"

namespace ndp::node {
namespace {

using namespace std::chrono_literals;

constexpr int kFailed = 1;
constexpr const char* kCheckpoint = "kubelet_internal_checkpoint";
// What events may have missed is looked at this often. Each look wakes a thread of every resource,
// and at rest that is most of what wakes.
constexpr Duration kPoll = 20s;
// A driver makes its device nodes one after another.
constexpr Duration kDevicesSettle = 100ms;
// GSP timeouts come 45 s apart.
constexpr Duration kExamineApart = 50s;

os::HostFs DevicesRoot(const config::Common& common) {
  const os::HostFs driver(common.driver_root_ctr_path);
  return driver.IsDirectory("/dev") ? driver : os::HostFs(common.host_root);
}

inventory::PlatformLoader::Place PlaceOf(const config::Common& common) {
  return {.driver_root = common.driver_root_ctr_path,
          .host_root = common.host_root,
          .strategy = common.device_discovery_strategy};
}

// By UUID: GPUs that do not exist for us.
std::set<std::string> Excluded(const config::Settings& settings,
                               const inventory::Inventory& inventory) {
  std::set<std::string> excluded;
  for (const auto& gpu : resource::SelectGpus(settings.devices, inventory).excluded)
    excluded.insert(gpu.uuid);
  return excluded;
}

// Settings that are understood and do nothing yet.
std::vector<std::string> NotThereYet(const config::Settings& settings) {
  std::vector<std::string> warnings;
  if (!settings.common.node_config_label.empty()) {
    warnings.emplace_back("node-config-label is not there yet: the configuration is the file's");
  }
  if (settings.sharing.strategy == config::SharingStrategy::kMps) {
    warnings.emplace_back(
        "the MPS control daemon is not there yet: shared devices wait for one that makes "
        "<resource>/.started in --mps-root, which this process sees at /mps");
  }
  return warnings;
}

}  // namespace

Node::Node(config::Loaded loaded, Deps deps)
    : loaded_(std::move(loaded)),
      deps_(std::move(deps)),
      limit_(deps_.clock),
      host_(settings().common.host_root),
      driver_root_(settings().common.driver_root_ctr_path),
      devices_(DevicesRoot(settings().common)),
      nvml_(settings().common.driver_root_ctr_path),
      loader_(nvml_, PlaceOf(settings().common)),
      handout_(driver_root_, host_, devices_, limit_),
      holders_(
          deps_.loop, [this](Holders::Answer answer) { AskWhoHolds(std::move(answer)); },
          [this] { ScheduleReconcile(); }),
      board_(std::make_shared<health::HealthBoard>()),
      worker_(deps_.loop, deps_.clock, {.watchdog = settings().health.watchdog},
              [this](const std::string& key, bool set_aside) {
                if (monitor_) monitor_->OnSetAside(key, set_aside);
                if (session_) session_->OnSetAside(key, set_aside);
              }) {}

Node::~Node() { *alive_ = false; }

void Node::Start() {
  warm_up_ = rpc::WarmUp();
  for (const int signal : {SIGHUP, SIGTERM, SIGINT, SIGQUIT}) {
    signals_.push_back(deps_.loop.OnSignal(signal, [this, signal] { OnSignal(signal); }));
  }
  auto web = OpenWeb(settings().web.listen_address);
  if (!web) {
    log::Error(web.error().message());
    return Stop(kFailed);
  }
  web_ = *std::move(web);
  if (const auto dead = rpc::RemoveDeadSockets(settings().plugin.socket_dir); dead > 0) {
    log::Info("removed sockets that a killed process left", {{"count", dead}});
  }
  handout_.set_another_serves(rpc::AnyoneServes(settings().plugin.socket_dir));
  for (const std::string& warning : NotThereYet(settings())) log::Warning(warning);
  holders_.Read(settings().plugin.socket_dir);
  WatchFolders();
  poll_timer_ = deps_.loop.Every(kPoll, [this] { Poll(); });
  monitor_ = std::make_unique<health::Monitor>(
      health::Monitor::Deps{
          .loop = deps_.loop,
          .clock = deps_.clock,
          .worker = worker_,
          .host = host_,
          .metrics = metrics_,
          .examine_apart =
              [&clock = deps_.clock, &nvml = nvml_](const std::string& pci, health::Depth depth) {
                return ExamineApart(nvml.driver_root(), pci, depth, clock, kExamineApart);
              }},
      settings().health,
      health::Monitor::Callbacks{
          .board =
              [this](std::shared_ptr<const health::HealthBoard> board) {
                OnBoard(std::move(board));
              },
          .refresh = [this](const std::string& why) { session_->Refresh(why); },
          .let_go = [this](std::set<std::string> gpus) { session_->LetGo(std::move(gpus)); }});
  session_ = std::make_unique<DriverSession>(
      DriverSession::Deps{.loop = deps_.loop,
                          .clock = deps_.clock,
                          .loader = loader_,
                          .worker = worker_,
                          .host = host_,
                          .devices = devices_,
                          .attaching = [this](bool all) { nvml_.set_attaching(all); }},
      settings().plugin.rescan_interval,
      DriverSession::Events{
          .inventory = [this](
                           const std::shared_ptr<nvml::Driver>& driver,
                           inventory::Inventory fresh) { OnInventory(driver, std::move(fresh)); },
          .index_in_doubt =
              [this] {
                index_in_doubt_ = true;
                Reconcile();
              },
          .failed = [this](const Error& why) { OnDriverFailed(why); },
          .closing = [this] { OnDriverClosing(); },
          .links =
              [this](std::shared_ptr<const inventory::LinkMatrix> links) {
                OnLinks(std::move(links));
              }});
  session_->Start();
  OpenControl();
  TellUnwatched();
}

void Node::OpenControl() {
  if (control_ != nullptr && control_->PutBack().ok()) return;
  control_.reset();
  auto opened = Control::Open({.loop = deps_.loop,
                               .monitor = *monitor_,
                               .session = *session_,
                               .handed_out = [this](doc::Value& to) { AddHandedOut(to); }},
                              settings().plugin.socket_dir);
  if (opened.ok()) {
    control_ = *std::move(opened);
  } else if (!socket_folder_missing_ && limit_.Allow("control")) {
    log::Warning("no control socket: ndp health, release and resume cannot reach this instance",
                 {{"why", opened.error().message()}});
  }
}

Result<std::unique_ptr<web::Server>> Node::OpenWeb(const config::ListenAddress& at) {
  if (at.off()) return std::unique_ptr<web::Server>();
  const web::Address address = at.unix_path.empty()
                                   ? web::Address(web::TcpAddress{at.host, at.port})
                                   : web::Address(web::UnixAddress{at.unix_path});
  web::Sources sources{.live = [this](std::function<void(Status)> done) { Ping(std::move(done)); },
                       .ready = [this] { return Ready(); },
                       .metrics =
                           [this] {
                             UpdateMetrics();
                             return metrics_.Text();
                           },
                       .status = [this] { return StatusDocument(); }};
  return web::Server::Open(deps_.loop, address, std::move(sources));
}

Status Node::MoveWeb(const config::ListenAddress& to) {
  const config::ListenAddress& from = settings().web.listen_address;
  if (to == from) return {};
  auto opened = OpenWeb(to);
  if (!opened && web_ != nullptr && to.unix_path.empty() && from.unix_path.empty() &&
      to.port == from.port) {
    web_.reset();  // it may be the old one itself that is in the way
    opened = OpenWeb(to);
    if (!opened) {
      if (auto back = OpenWeb(from)) web_ = *std::move(back);
    }
  }
  if (!opened) return opened.error();
  web_ = *std::move(opened);
  return {};
}

void Node::WatchFolders() {
  const std::string& sockets = settings().plugin.socket_dir;
  using Change = os::DirWatch::Change;
  socket_watch_ = os::DirWatch::Open(
      deps_.loop, sockets,
      [this](Change change, std::string_view name) { OnSocketFolder(change, name); });
  TellSocketFolder();
  for (const char* folder : {"/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"}) {
    device_watches_.push_back(os::DirWatch::Open(
        deps_.loop, devices_.Path(folder), [this](Change change, std::string_view name) {
          const bool ours = name.starts_with("nvidia") || name.starts_with("channel") ||
                            change == Change::kLookAgain;
          if (!ours || change == Change::kWritten) return;
          // A folder that comes whole may be that of the IMEX channels.
          if (IsGpuNode(name) || name.starts_with("channel") || change == Change::kLookAgain) {
            answers_changed_ = true;
          }
          if (devices_settle_) return;
          devices_settle_ = deps_.loop.After(kDevicesSettle, [this] {
            devices_settle_.Cancel();
            // Before the session is refreshed, which takes seconds: nobody gets a GPU or a required
            // IMEX channel without node.
            if (std::exchange(answers_changed_, false)) {
              handout_.Forget();
              ScheduleReconcile();
            }
            session_->OnDeviceNodes();
          });
        }));
  }
  WatchSpecs();
  if (const std::string& file = settings().common.config_file; !file.empty()) {
    config_watch_ =
        FileWatch::Open(deps_.loop, file, [this] { Reload("the configuration file has changed"); });
  }
}

// A file of ours that goes is put back at once, and one of others may define our names too.
void Node::WatchSpecs() {
  spec_watch_.reset();
  if (!settings().plugin.uses_cdi()) return;
  using Change = os::DirWatch::Change;
  spec_watch_ = os::DirWatch::Open(
      deps_.loop, settings().cdi.spec_dir, [this](Change change, std::string_view name) {
        const bool ours = name.starts_with(cdi::kVendor);
        if (change == Change::kVanished || change == Change::kLookAgain ||
            (change != Change::kCreated && !ours)) {
          ScheduleReconcile();
        }
      });
}

void Node::TellSocketFolder() {
  const std::string& folder = settings().plugin.socket_dir;
  std::error_code ec;
  const auto status = std::filesystem::status(folder, ec);
  const bool missing = !std::filesystem::is_directory(status);
  if (std::exchange(socket_folder_missing_, missing) == missing) return;
  if (!missing) {
    log::Info("the socket folder is there", {{"folder", folder}});
  } else if (ec == std::errc::permission_denied) {
    log::Warning("the socket folder cannot be looked into, run as root: waiting for it",
                 {{"folder", folder}, {"why", ec.message()}});
  } else if (std::filesystem::exists(status)) {
    log::Warning("the socket folder is no folder: waiting for one", {{"folder", folder}});
  } else {
    log::Warning("the socket folder is missing: waiting for it", {{"folder", folder}});
  }
}

void Node::OnSocketFolder(os::DirWatch::Change change, std::string_view name) {
  if (change == os::DirWatch::Change::kLookAgain) TellSocketFolder();
  // A resource's server may be retired by what follows.
  for (auto& [resource, server] : servers_) server->OnFolderEvent(change, name);
  if (name == kCheckpoint || change == os::DirWatch::Change::kLookAgain) ScheduleReconcile();
  if (change == os::DirWatch::Change::kLookAgain && session_ != nullptr) OpenControl();
}

void Node::OnSignal(int signal) {
  if (signal == SIGHUP) {
    Reload("SIGHUP");
    if (session_) session_->Refresh("SIGHUP");
    return;
  }
  log::Info("stopping", {{"signal", signal}});
  Stop(0);
}

void Node::Stop(int code) {
  if (std::exchange(stopping_, true)) return;
  servers_.clear();
  web_.reset();
  control_.reset();
  deps_.exit(code);
}

void Node::OnInventory(const std::shared_ptr<nvml::Driver>& driver, inventory::Inventory fresh) {
  driver_error_.clear();
  library_ = driver->library();
  index_in_doubt_ = false;
  const bool first = inventory_ == nullptr;
  for (const inventory::BrokenGpu& broken : fresh.broken) {
    if (limit_.Allow(fmt::format("broken {}", broken.index))) {
      log::Warning("a GPU cannot be read", {{"index", broken.index}, {"why", broken.reason}});
    }
  }
  if (first) {
    log::Info("GPUs found", {{"count", fresh.gpus.size()},
                             {"platform", std::string(inventory::PlatformName(fresh.platform))},
                             {"driver", fresh.driver.driver_version}});
  }
  // Health hears what the scan really found, and which of it does not exist for us.
  monitor_->SetExcluded(Excluded(settings(), fresh));
  monitor_->OnInventory(std::make_shared<const inventory::Inventory>(fresh), driver);
  auto merged = first ? std::move(fresh) : KeepVanished(*inventory_, std::move(fresh));
  const auto uuids = [](const inventory::Inventory& inventory) {
    std::vector<std::string> all;
    for (const inventory::Gpu& gpu : inventory.gpus) all.push_back(gpu.uuid());
    return all;
  };
  const bool same_gpus = !first && uuids(*inventory_) == uuids(merged);
  if (!same_gpus) links_ = nullptr;
  merged.links = links_;
  if (!first) previous_layouts_ = resource::LayoutsOf(*inventory_);
  inventory_ = std::make_shared<const inventory::Inventory>(std::move(merged));
  scores_ = std::make_shared<const resource::PairScores>(resource::ScoresOf(*inventory_));
  if (!looked_) {
    monitor_->FirstPoll([this] { Looked(); });
  } else {
    ScheduleReconcile();
  }
  if (links_ == nullptr) ReadLinksWhenRegistered();
}

void Node::Looked() {
  if (std::exchange(looked_, true)) return;
  Reconcile();
}

void Node::OnBoard(std::shared_ptr<const health::HealthBoard> board) {
  board_ = std::move(board);
  ScheduleReconcile();
  ExitWhereStale();
}

void Node::ExitWhereStale() {
  const health::DriverHealth& driver = board_->driver;
  if (driver.available || !driver.grace_over || library_.empty() ||
      !settings().health.exit_on_stale_injection) {
    return;
  }
  const auto mounts = host_.Read("/proc/self/mountinfo");
  if (!DriverIsInjected({.mountinfo = mounts.ok() ? std::string_view(*mounts) : std::string_view(),
                         .library = library_,
                         .driver_root = settings().common.driver_root_ctr_path,
                         .devices_root = devices_.root()})) {
    return;
  }
  log::Error(
      "the driver that a runtime put into this container has gone stale: ending, to be made anew "
      "(--exit-on-stale-injection)",
      {{"why", driver.reason}, {"library", library_.string()}});
  Stop(kFailed);
}

void Node::OnDriverFailed(const Error& why) {
  const bool news = driver_error_ != why.message();
  driver_error_ = why.message();
  if (inventory_ == nullptr && settings().common.fail_on_init_error) {
    if (settings().plugin.uses_cdi()) {
      log::Error(
          "device-list-strategy: the CDI strategies work on systems with NVML, on WSL and on Tegra "
          "(fail-on-init-error is set)",
          {{"why", why.message()}});
    } else {
      log::Error("no usable NVIDIA driver (fail-on-init-error is set)", {{"why", why.message()}});
    }
    return Stop(kFailed);
  }
  if (news || limit_.Allow("driver")) {
    log::Warning("no usable NVIDIA driver: trying again", {{"why", why.message()}});
  }
  monitor_->OnDriverFailed(why.message());
  // Pods may hold devices of ours from before: they are listed although nothing can be offered.
  Looked();
}

void Node::OnDriverClosing() { monitor_->LetGo(); }

void Node::OnLinks(std::shared_ptr<const inventory::LinkMatrix> links) {
  links_ = std::move(links);
  if (inventory_ == nullptr) return;
  inventory::Inventory with = *inventory_;
  with.links = links_;
  inventory_ = std::make_shared<const inventory::Inventory>(std::move(with));
  scores_ = std::make_shared<const resource::PairScores>(resource::ScoresOf(*inventory_));
  log::Info("GPU links read", {{"pairs", links_->pairs.size() / 2}});
  ScheduleReconcile();
}

void Node::Reload(const std::string& why) {
  log::Info("reloading the configuration", {{"why", why}});
  const auto refuse = [this](const Error& error) {
    config_error_ = error.message();
    log::Error("the new configuration is refused, the old one goes on", {{"why", config_error_}});
    metrics_
        .AddCounter("ndp_config_reload_errors_total", "Configurations that were refused on reload.")
        .Increment();
  };
  auto next = deps_.reload();
  if (!next) return refuse(next.error());
  if (inventory_ != nullptr) {
    auto set = resource::Build(next->settings, *inventory_,
                               {.loading = true, .previous_scan = &previous_layouts_});
    if (!set) return refuse(set.error());
  }
  if (const Status moved = MoveWeb(next->settings.web.listen_address); !moved.ok())
    return refuse(moved.error());
  Adopt(*std::move(next));
}

void Node::Adopt(config::Loaded next) {
  const config::Loaded replaced = std::exchange(loaded_, std::move(next));
  const config::Settings& before = replaced.settings;
  config_error_.clear();
  deps_.adopted(replaced, loaded_);
  worker_.set_watchdog(settings().health.watchdog);
  if (!(settings().health == before.health)) monitor_->Configure(settings().health);
  if (inventory_ != nullptr) monitor_->SetExcluded(Excluded(settings(), *inventory_));
  if (settings().plugin.rescan_interval != before.plugin.rescan_interval) {
    session_->set_rescan_interval(settings().plugin.rescan_interval);
  }
  if (settings().common.driver_root_ctr_path != before.common.driver_root_ctr_path ||
      settings().common.device_discovery_strategy != before.common.device_discovery_strategy) {
    nvml_.set_driver_root(settings().common.driver_root_ctr_path);
    loader_.set_place(PlaceOf(settings().common));
    driver_root_ = os::HostFs(settings().common.driver_root_ctr_path);
    devices_ = DevicesRoot(settings().common);
    session_->Refresh("the driver root or the way of discovery has changed");
  }
  if (settings().cdi.spec_dir != before.cdi.spec_dir ||
      settings().plugin.uses_cdi() != before.plugin.uses_cdi()) {
    WatchSpecs();
  }
  ScheduleReconcile();
}

void Node::Poll() {
  TellSocketFolder();
  for (auto& [resource, server] : servers_) server->Poll();
  // Pods come and go without a sign where the folder cannot be watched.
  ScheduleReconcile();
}

}  // namespace ndp::node
