// The device plugin's composition root: owns the current snapshots and everything that lives on the
// loop, and reconciles the resources' servers with whatever has changed. Loop thread only.
//
// Split over node.cc (life), reconcile.cc (snapshots to servers) and status.cc (what it tells).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "config/load.h"
#include "doc/value.h"
#include "health/board.h"
#include "health/monitor.h"
#include "inventory/inventory.h"
#include "inventory/platform.h"
#include "metrics/registry.h"
#include "node/control.h"
#include "node/driver_session.h"
#include "node/file_watch.h"
#include "node/handout.h"
#include "node/holders.h"
#include "node/offer.h"
#include "node/standing_warnings.h"
#include "node/trouble_log.h"
#include "nvml/dl_driver.h"
#include "nvml/query_worker.h"
#include "os/dir_watch.h"
#include "os/event_loop.h"
#include "os/host_fs.h"
#include "resource/resource_set.h"
#include "rpc/resource_server.h"
#include "web/server.h"

namespace ndp::node {

class Node {
 public:
  struct Deps {
    os::EventLoop& loop;
    const Clock& clock;  // thread-safe
    // The configuration again, from the same command line and environment.
    std::function<Result<config::Loaded>()> reload;
    // A configuration has been taken over from the one before.
    std::function<void(const config::Loaded& before, const config::Loaded& now)> adopted;
    // End the program with this status, once the sockets are gone.
    std::function<void(int code)> exit;
    std::string version;
  };

  Node(config::Loaded loaded, Deps deps);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Everything else follows from the loop.
  void Start();

 private:
  const config::Settings& settings() const { return loaded_.settings; }

  // node.cc
  // Null where it is off.
  Result<std::unique_ptr<web::Server>> OpenWeb(const config::ListenAddress& at);
  // To the address of a new configuration; the old one is kept where that fails.
  Status MoveWeb(const config::ListenAddress& to);
  void OpenControl();
  void ExitWhereStale();
  void WatchFolders();
  void WatchSpecs();
  void TellSocketFolder();
  void OnSocketFolder(os::DirWatch::Change change, std::string_view name);
  void OnSignal(int signal);
  void Stop(int code);
  void OnInventory(const std::shared_ptr<nvml::Driver>& driver, inventory::Inventory fresh);
  // The first look at the driver is done, well or badly: lists may be built from now on.
  void Looked();
  void OnBoard(std::shared_ptr<const health::HealthBoard> board);
  void OnDriverFailed(const Error& why);
  void OnDriverClosing();
  void OnLinks(std::shared_ptr<const inventory::LinkMatrix> links);
  void Reload(const std::string& why);
  void Adopt(config::Loaded next);
  void Poll();

  // reconcile.cc
  void ScheduleReconcile();
  void Reconcile();
  void AskWhoHolds(Holders::Answer answer);
  void Apply(std::vector<Offer> offers);
  void Serve(plugin::Resource resource);
  void ReadLinksWhenRegistered();
  void AddMpsTrouble(OfferInputs& in);
  void TellUses();

  // status.cc
  doc::Value DriverStatus() const;
  doc::Value StatusDocument() const;
  // For `ndp health`: each resource, what of it is not handed out, and what is in none.
  void AddHandedOut(doc::Value& to) const;
  doc::Value NotOfferedStatus() const;
  Status Ready() const;
  void Ping(std::function<void(Status)> done);
  void UpdateMetrics();
  void TellUnwatched();
  void LogChanges(const resource::ResourceSet& before);

  config::Loaded loaded_;
  Deps deps_;
  std::jthread warm_up_;  // of gRPC, while the driver is opened
  metrics::Registry metrics_;
  log::RateLimit limit_;
  TroubleLog trouble_log_{limit_};
  os::HostFs host_;
  os::HostFs driver_root_;
  os::HostFs devices_;
  nvml::DlLoader nvml_;
  inventory::PlatformLoader loader_;
  Handout handout_;
  Holders holders_;

  // Current snapshots.
  std::shared_ptr<const inventory::Inventory> inventory_;  // null until the first scan
  std::shared_ptr<const inventory::LinkMatrix> links_;
  std::shared_ptr<const health::HealthBoard> board_;
  std::shared_ptr<const resource::PairScores> scores_;
  resource::ResourceSet set_;
  resource::MigLayouts previous_layouts_;  // of the scan before inventory_'s

  std::string driver_error_;       // empty while a session is open
  std::filesystem::path library_;  // that was loaded last; empty: none yet
  std::string config_error_;       // why the last reload was refused
  StandingWarnings handout_warnings_{limit_, "handout"};
  StandingWarnings set_warnings_{limit_, "resources"};
  // Builds check a configuration, not a changed machine, until it has fitted once.
  bool loading_ = true;
  bool index_in_doubt_ = false;
  bool misfit_ = false;  // the configuration contradicts the machine, nothing is built
  bool looked_ = false;
  bool stopping_ = false;
  bool reconcile_scheduled_ = false;

  nvml::QueryWorker worker_;
  std::unique_ptr<health::Monitor> monitor_;
  std::unique_ptr<DriverSession> session_;
  std::unique_ptr<Control> control_;
  std::map<std::string, std::unique_ptr<rpc::ResourceServer>, std::less<>> servers_;
  std::map<std::string, plugin::Resource, std::less<>> retiring_;

  std::unique_ptr<os::DirWatch> socket_watch_;
  std::vector<std::unique_ptr<os::DirWatch>> device_watches_;
  std::unique_ptr<os::DirWatch> spec_watch_;                          // null without CDI
  std::map<std::string, std::unique_ptr<os::DirWatch>> mps_watches_;  // by resource
  std::unique_ptr<FileWatch> config_watch_;
  bool unwatched_ = false;              // told that inotify does not work
  bool socket_folder_missing_ = false;  // and told
  std::vector<os::EventLoop::Handle> signals_;
  os::EventLoop::Handle poll_timer_;
  os::EventLoop::Handle leave_timer_;
  os::EventLoop::Handle devices_settle_;
  bool answers_changed_ = false;  // a node that is handed out has come or gone, within that time
  os::EventLoop::Handle links_timer_;
  os::EventLoop::Handle reload_settle_;
  std::unique_ptr<web::Server> web_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ndp::node
