// What the node tells of itself: /status.json, readiness, liveness, gauges, log lines.
#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/ids.h"
#include "base/text.h"
#include "health/board_document.h"
#include "node/node.h"

namespace ndp::node {
namespace {

doc::Value GpuStatus(const inventory::Gpu& gpu) {
  doc::Value out = doc::Value::Map();
  out.Set("index", gpu.index());
  out.Set("uuid", gpu.uuid());
  out.Set("name", gpu.name());
  out.Set("pciBusId", gpu.pci_bus_id());
  if (gpu.nvml.minor) out.Set("minor", *gpu.nvml.minor);
  if (gpu.numa_node) out.Set("numaNode", *gpu.numa_node);
  if (gpu.nvml.memory_bytes) out.Set("memoryMiB", *gpu.nvml.memory_bytes >> 20);
  if (gpu.nvml.compute_capability) {
    out.Set("computeCapability", fmt::format("{}.{}", gpu.nvml.compute_capability->first,
                                             gpu.nvml.compute_capability->second));
  }
  if (gpu.nvml.mig_mode) {
    out.Set("mig", gpu.nvml.mig_mode->current ? "enabled" : "disabled");
    if (gpu.nvml.mig_mode->pending != gpu.nvml.mig_mode->current) {
      out.Set("migPending", gpu.nvml.mig_mode->pending ? "enabled" : "disabled");
    }
  }
  if (gpu.nvml.mig_failure) out.Set("migTrouble", gpu.nvml.mig_failure->Message());
  if (!gpu.trouble.empty()) out.Set("trouble", gpu.trouble);
  return out;
}

doc::Value ServerStatus(const rpc::ResourceServer& server) {
  const plugin::Registration::State state = server.state();
  doc::Value out = doc::Value::Map();
  out.Set("registered", state.registered);
  out.Set("endpoint", state.endpoint);
  if (state.since) out.Set("since", FormatWallTime(*state.since));
  if (!state.last_error.empty()) out.Set("lastError", state.last_error);
  out.Set("registrations", state.registrations);
  out.Set("losses", state.losses);
  out.Set("streams", server.streams());
  return out;
}

}  // namespace

doc::Value Node::DriverStatus() const {
  doc::Value driver = doc::Value::Map();
  driver.Set("open", session_ != nullptr && session_->open());
  // A session that has died may take its time to close: until then health alone knows why.
  const std::string& error = driver_error_.empty() ? board_->driver.reason : driver_error_;
  if (!error.empty()) driver.Set("error", error);
  if (session_ != nullptr && session_->released()) driver.Set("released", true);
  if (inventory_ == nullptr) return driver;
  driver.Set("version", inventory_->driver.driver_version);
  driver.Set("platform", std::string(inventory::PlatformName(inventory_->platform)));
  driver.Set("linksRead", links_ != nullptr);
  return driver;
}

doc::Value Node::StatusDocument() const {
  doc::Value out = doc::Value::Map();
  out.Set("version", deps_.version);
  out.Set("time", FormatWallTime(deps_.clock.Wall()));
  out.Set("driver", DriverStatus());
  out.Set("health", health::BoardDocument(*board_));
  doc::Value gpus = doc::Value::List();
  doc::Value broken = doc::Value::List();
  if (inventory_ != nullptr) {
    for (const inventory::Gpu& gpu : inventory_->gpus) gpus.Append(GpuStatus(gpu));
    for (const inventory::BrokenGpu& gpu : inventory_->broken) {
      doc::Value entry = doc::Value::Map();
      entry.Set("index", gpu.index);
      entry.Set("reason", gpu.reason);
      broken.Append(std::move(entry));
    }
  }
  out.Set("gpus", std::move(gpus));
  if (inventory_ != nullptr) out.Set("unreadableGpus", std::move(broken));
  doc::Value& resources = out.Set("resources", doc::Value::List());
  for (const auto& [name, server] : servers_) {
    doc::Value entry = doc::Value::Map();
    entry.Set("name", name);
    std::size_t healthy = 0;
    doc::Value devices = doc::Value::List();
    for (const plugin::ListedDevice& device : server->view()->devices()) {
      healthy += device.healthy ? 1 : 0;
      doc::Value item = doc::Value::Map();
      item.Set("id", device.id);
      item.Set("health", device.healthy ? "Healthy" : "Unhealthy");
      const health::DeviceHealth& verdict = board_->Of(StripReplica(device.id));
      // What the board does not hold against it (a pod holds it elsewhere, …) has a reason alone.
      if (!device.healthy && verdict.healthy) item.Set("reason", device.reason);
      health::AddVerdict(item, verdict);
      devices.Append(std::move(item));
    }
    entry.Set("capacity", server->view()->devices().size());
    entry.Set("healthy", healthy);
    entry.Set("registration", ServerStatus(*server));
    entry.Set("devices", std::move(devices));
    resources.Append(std::move(entry));
  }
  out.Set("notOffered", NotOfferedStatus());
  doc::Value& warnings = out.Set("warnings", doc::Value::List());
  for (const std::string& warning : loaded_.warnings) warnings.Append(warning);
  for (const std::string& warning : set_.warnings) warnings.Append(warning);
  if (!config_error_.empty()) out.Set("configError", config_error_);
  if (!holders_.error().empty()) out.Set("heldDevicesError", holders_.error());
  out.Set("settings", config::ToJson(loaded_));
  return out;
}

doc::Value Node::NotOfferedStatus() const {
  doc::Value out = doc::Value::List();
  for (const resource::NotOffered& device : set_.not_offered) {
    doc::Value entry = doc::Value::Map();
    entry.Set("index", device.index);
    entry.Set("uuid", device.uuid);
    entry.Set("reason", device.reason);
    out.Append(std::move(entry));
  }
  return out;
}

void Node::AddHandedOut(doc::Value& to) const {
  doc::Value& resources = to.Set("resources", doc::Value::List());
  for (const auto& [name, server] : servers_) {
    std::size_t healthy = 0;
    // Health has its own words for the rest.
    std::map<std::string, std::vector<std::string>> withheld;
    for (const plugin::ListedDevice& device : server->view()->devices()) {
      if (device.healthy) {
        ++healthy;
      } else if (board_->Of(StripReplica(device.id)).healthy) {
        withheld[device.reason].push_back(device.id);
      }
    }
    doc::Value entry = doc::Value::Map();
    entry.Set("name", name);
    entry.Set("capacity", server->view()->devices().size());
    entry.Set("healthy", healthy);
    doc::Value& reasons = entry.Set("withheld", doc::Value::List());
    for (const auto& [reason, ids] : withheld) {
      doc::Value one = doc::Value::Map();
      one.Set("reason", reason);
      one.Set("count", ids.size());
      one.Set("first", ids.front());
      reasons.Append(std::move(one));
    }
    resources.Append(std::move(entry));
  }
  to.Set("notOffered", NotOfferedStatus());
}

Status Node::Ready() const {
  // A refused reload leaves the old configuration in force: that is ready.
  if (misfit_) return Error(Code::kUnavailable, "the configuration is refused: " + config_error_);
  // Before that nothing is served, and nothing that is to be registered is known.
  if (!looked_) return Error(Code::kUnavailable, "the first look at the driver is not done");
  for (const auto& [name, server] : servers_) {
    const plugin::Registration::State state = server->state();
    if (state.wanted && !state.registered) {
      return Error(Code::kUnavailable,
                   fmt::format("{} is not registered: {}", name,
                               state.last_error.empty() ? "no kubelet yet" : state.last_error));
    }
  }
  return {};
}

void Node::Ping(std::function<void(Status)> done) {
  // The loop answers by being here; each server's thread by its pong.
  auto waiting = std::make_shared<std::size_t>(servers_.size());
  auto shared = std::make_shared<std::function<void(Status)>>(std::move(done));
  if (*waiting == 0) return (*shared)({});
  for (auto& [name, server] : servers_) {
    server->Ping([waiting, shared] {
      if (--*waiting == 0) (*shared)({});
    });
  }
}

void Node::UpdateMetrics() {
  std::vector<std::pair<metrics::Labels, double>> listed;
  std::vector<std::pair<metrics::Labels, double>> healthy;
  for (const auto& [name, server] : servers_) {
    double good = 0;
    for (const plugin::ListedDevice& device : server->view()->devices())
      good += device.healthy ? 1 : 0;
    listed.push_back({{{"resource", name}}, static_cast<double>(server->view()->devices().size())});
    healthy.push_back({{{"resource", name}}, good});
  }
  metrics_.ReplaceGauges("ndp_devices", "Devices on the list of a resource.", listed);
  metrics_.ReplaceGauges("ndp_devices_healthy",
                         "Devices on the list of a resource that are Healthy.", healthy);
  metrics_.AddGauge("ndp_driver_up", "Whether a session with the NVIDIA driver is open.")
      .Set(session_ && session_->open() ? 1 : 0);
  metrics_.AddGauge("ndp_driver_released", "Whether `ndp release` holds the driver closed.")
      .Set(session_ && session_->released() ? 1 : 0);
  metrics_.AddGauge("ndp_gpus", "GPUs known, those that are lost among them.")
      .Set(inventory_ ? static_cast<double>(inventory_->gpus.size()) : 0);
  metrics_.AddGauge("ndp_not_offered", "GPUs and MIG devices that are in no resource.")
      .Set(static_cast<double>(set_.not_offered.size()));
  metrics_.AddGauge("ndp_config_error", "Whether the last configuration was refused.")
      .Set(config_error_.empty() ? 0 : 1);
}

// Where inotify does not work, the watches poll: slower, so it is told, once for all folders.
void Node::TellUnwatched() {
  std::vector<std::string> folders;
  std::string why;
  const auto look = [&](const os::DirWatch* watch) {
    if (watch == nullptr || watch->trouble().empty()) return;
    if (folders.empty()) why = watch->trouble();
    folders.push_back(watch->folder().string());
  };
  look(socket_watch_.get());
  for (const auto& watch : device_watches_) look(watch.get());
  look(spec_watch_.get());
  for (const auto& [resource, watch] : mps_watches_) look(watch.get());
  if (config_watch_) look(&config_watch_->folder());
  if (monitor_) look(monitor_->fence_folder());
  metrics_.AddGauge("ndp_unwatched_folders", "Folders whose changes are seen by slow polls alone.")
      .Set(static_cast<double>(folders.size()));
  if (unwatched_ == !folders.empty()) return;
  unwatched_ = !folders.empty();
  if (unwatched_) {
    log::Warning("folders cannot be watched: changes in them are seen by polls alone",
                 {{"folders", Join(folders, ", ")},
                  {"every", FormatDuration(os::DirWatch::kPoll)},
                  {"why", why}});
  } else {
    log::Info("all folders are watched again");
  }
}

void Node::LogChanges(const resource::ResourceSet& before) {
  set_warnings_.Tell(set_.warnings);
  for (const resource::NotOffered& device : set_.not_offered) {
    if (std::ranges::find(before.not_offered, device) == before.not_offered.end() &&
        limit_.Allow(fmt::format("not offered {}", device.index))) {
      log::Warning("not offered",
                   {{"index", device.index}, {"uuid", device.uuid}, {"why", device.reason}});
    }
  }
}

}  // namespace ndp::node
