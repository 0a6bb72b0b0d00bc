// From the current snapshots to the servers.
#include <fmt/format.h>

#include <algorithm>

#include "node/node.h"
#include "os/unix_socket.h"
#include "resource/build.h"
#include "rpc/pod_resources.h"

namespace ndp::node {
namespace {

using namespace std::chrono_literals;

// After the first registration, so that the kubelet's first questions do not meet link queries.
constexpr Duration kLinksDelay = 200ms;

// Devices that cannot be in use beside each other: a GPU and its MIG devices.
std::map<std::string, std::vector<std::string>> Relatives(const inventory::Inventory& inventory) {
  std::map<std::string, std::vector<std::string>> relatives;
  for (const inventory::Gpu& gpu : inventory.gpus) {
    for (const inventory::MigDevice& mig : gpu.mig) {
      relatives[gpu.uuid()].push_back(mig.nvml.uuid);
      relatives[mig.nvml.uuid].push_back(gpu.uuid());
    }
  }
  return relatives;
}

}  // namespace

void Node::ScheduleReconcile() {
  if (std::exchange(reconcile_scheduled_, true)) return;
  // Changes that come together make one list: each list costs the kubelet a checkpoint.
  deps_.loop.Post([this, alive = alive_] {
    if (!*alive) return;
    reconcile_scheduled_ = false;
    Reconcile();
  });
}

void Node::Reconcile() {
  if (stopping_ || !looked_) return;
  holders_.Read(settings().plugin.socket_dir);
  static const inventory::Inventory nothing;
  const inventory::Inventory& inventory = inventory_ ? *inventory_ : nothing;
  const bool loading = loading_ && inventory_ != nullptr;
  auto built =
      resource::Build(settings(), inventory,
                      {.loading = loading, .former = &set_, .previous_scan = &previous_layouts_});
  if (!built) {
    // The configuration of the start contradicts the machine, until one of them is another.
    if (!misfit_ || config_error_ != built.error().message())
      log::Error("the configuration does not fit this node", {{"why", built.error().message()}});
    config_error_ = built.error().message();
    misfit_ = true;
    if (settings().common.fail_on_init_error && servers_.empty()) return Stop(1);
    return;
  }
  if (loading) loading_ = false;
  if (std::exchange(misfit_, false)) config_error_.clear();
  const resource::ResourceSet before = std::exchange(set_, *std::move(built));
  LogChanges(before);
  TellUses();

  Handout::Answer handout = handout_.Prepare(settings(), inventory_, holders_.held());
  handout_warnings_.Tell(handout.warnings);
  OfferInputs in{.settings = settings(),
                 .set = set_,
                 .board = *board_,
                 .held = holders_.held(),
                 .shown = {},
                 .scores = scores_,
                 .control_nodes = std::move(handout.control_nodes),
                 .relatives = Relatives(inventory),
                 .device_trouble = std::move(handout.device_trouble),
                 .resource_trouble = {},
                 .trouble = std::move(handout.trouble),
                 .imex_channels = std::move(handout.imex_channels),
                 .cdi_additional = std::move(handout.cdi_additional),
                 .all_without_cdi = handout.all_without_cdi,
                 .without_cdi = std::move(handout.without_cdi),
                 .index_in_doubt = index_in_doubt_,
                 .now = deps_.clock.Now()};
  for (const auto& [name, server] : servers_) {
    in.shown[name] = {.view = server->shown(), .unhealthy = &server->unhealthy()};
  }
  AddMpsTrouble(in);
  std::vector<Offer> offers = BuildOffers(in);
  trouble_log_.Tell(offers, *board_, handout.told);
  Apply(std::move(offers));
  TellUnwatched();
}

// Whose compute mode matters: health asks whether a GPU is shared.
void Node::TellUses() {
  std::map<std::string, health::GpuUse> uses;
  for (const resource::Resource& resource : set_.resources) {
    for (const resource::Device& device : resource.devices) {
      if (!device.shared()) continue;
      health::GpuUse& use = uses[device.gpu_uuid];
      use.shared = true;
      use.mps = use.mps || device.mps;
    }
  }
  monitor_->SetUses(std::move(uses));
}

// The MPS control daemon says by a file that a resource's server runs: before that a client would
// fail to start.
void Node::AddMpsTrouble(OfferInputs& in) {
  for (const resource::Resource& resource : set_.resources) {
    if (resource.sharing != config::SharingStrategy::kMps) continue;
    const std::string folder = "/mps/" + resource.name;
    if (!host_.Exists(folder + "/.started")) {
      in.resource_trouble[resource.name] = fmt::format(
          "the MPS daemon is not ready: {}/.started is missing (the host's {} is to be "
          "mounted at /mps)",
          folder, settings().plugin.mps_root);
    }
    auto& watch = mps_watches_[resource.name];
    if (watch != nullptr) continue;
    watch = os::DirWatch::Open(deps_.loop, host_.Path(folder),
                               [this](os::DirWatch::Change, std::string_view name) {
                                 if (name.empty() || name == ".started") ScheduleReconcile();
                               });
  }
}

// The API's socket is beside the plugin folder, where it is mounted.
void Node::AskWhoHolds(Holders::Answer answer) {
  const std::filesystem::path folder = settings().plugin.socket_dir;
  auto kubelet = os::ConnectUnix(folder.parent_path() / "pod-resources" / "kubelet.sock");
  if (!kubelet) return answer(kubelet.error());
  rpc::ListHeldDevices(*std::move(kubelet), std::move(answer));
}

void Node::Apply(std::vector<Offer> offers) {
  std::optional<MonoTime> look_again;
  bool waits_for_pods = false;
  for (Offer& offer : offers) {
    waits_for_pods = waits_for_pods || offer.waits_for_pods;
    if (offer.look_again && (!look_again || *offer.look_again < *look_again))
      look_again = offer.look_again;
    const std::string name = offer.resource.name;
    if (!offer.retire) {
      Serve(std::move(offer.resource));
      continue;
    }
    const auto at = servers_.find(name);
    if (at == servers_.end() || retiring_.contains(name)) continue;
    log::Info("retiring a resource: nothing of it is offered or held", {{"resource", name}});
    retiring_.emplace(name, plugin::Resource{});
    at->second->Retire([this, alive = alive_, name] {
      if (!*alive) return;
      servers_.erase(name);
      retiring_.erase(name);
      ScheduleReconcile();  // it may be wanted again by now
    });
  }
  if (waits_for_pods) holders_.Doubt();
  leave_timer_.Cancel();
  if (look_again) {
    leave_timer_ = deps_.loop.After(std::max<Duration>(*look_again - deps_.clock.Now(), 10ms),
                                    [this] { ScheduleReconcile(); });
  }
}

void Node::Serve(plugin::Resource resource) {
  if (retiring_.contains(resource.name)) return;  // started anew when it is gone
  const auto at = servers_.find(resource.name);
  if (at != servers_.end() && at->second->view()->resource() == resource) return;
  const std::string name = resource.name;
  auto view = std::make_shared<const plugin::ResourceView>(std::move(resource));
  if (at != servers_.end()) {
    const std::size_t before = at->second->view()->devices().size();
    if (before != view->devices().size()) {
      log::Info("a resource has another number of devices",
                {{"resource", name}, {"devices", view->devices().size()}, {"before", before}});
    }
    return at->second->Update(std::move(view));
  }
  log::Info("serving a resource", {{"resource", name}, {"devices", view->devices().size()}});
  servers_.emplace(name, rpc::ResourceServer::Start(
                             std::move(view),
                             {.socket_dir = settings().plugin.socket_dir,
                              .kubelet_socket = settings().plugin.kubelet_socket,
                              .on_change = [this] { ScheduleReconcile(); }},
                             {.loop = deps_.loop, .clock = deps_.clock, .metrics = metrics_}));
}

void Node::ReadLinksWhenRegistered() {
  if (links_timer_) return;
  links_timer_ = deps_.loop.After(kLinksDelay, [this] {
    links_timer_.Cancel();
    if (links_ == nullptr) session_->ReadLinks();
  });
}

}  // namespace ndp::node
