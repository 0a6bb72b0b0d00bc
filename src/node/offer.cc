#include "node/offer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/ids.h"

namespace ndp::node {
namespace {

using config::DeviceListStrategy;

plugin::AllocateOptions Options(const OfferInputs& in, const resource::Resource& resource) {
  const config::Plugin& p = in.settings.plugin;
  plugin::AllocateOptions o;
  o.envvar = p.uses(DeviceListStrategy::kEnvvar);
  o.volume_mounts = p.uses(DeviceListStrategy::kVolumeMounts);
  o.cdi_annotations = p.uses(DeviceListStrategy::kCdiAnnotations);
  o.cdi_cri = p.uses(DeviceListStrategy::kCdiCri);
  o.ids_by_index = p.device_id_strategy == config::DeviceIdStrategy::kIndex;
  o.index_in_doubt = in.index_in_doubt;
  o.pass_device_specs = p.pass_device_specs;
  o.dev_root = in.settings.common.dev_root;
  o.control_nodes = in.control_nodes;
  o.gdrcopy = p.gdrcopy_enabled;
  o.gds = p.gds_enabled;
  o.mofed = p.mofed_enabled;
  o.imex_channels = in.imex_channels;
  if (resource.sharing == config::SharingStrategy::kMps) o.mps_root = p.mps_root;
  o.fail_requests_greater_than_one = resource.fail_requests_greater_than_one;
  o.cdi_additional = in.cdi_additional;
  o.cdi_annotation_prefix = in.settings.cdi.annotation_prefix;
  return o;
}

// The first other resource under which a pod holds the device, or a relative of it.
std::optional<std::string> HeldElsewhere(const OfferInputs& in, const resource::Device& device,
                                         const std::string& resource) {
  const auto other = [&](const std::string& uuid, bool relative) -> std::optional<std::string> {
    for (const std::string& holder : in.held.ResourcesHolding(uuid)) {
      if (relative || holder != resource) return holder;
    }
    return std::nullopt;
  };
  if (auto holder = other(device.uuid, false)) return holder;
  if (const auto at = in.relatives.find(device.uuid); at != in.relatives.end()) {
    for (const std::string& relative : at->second) {
      if (auto holder = other(relative, true)) return holder;
    }
  }
  // Held whole while it is now offered in replicas, or the other way round.
  for (const std::string& id : in.held.Ids(resource)) {
    if (StripReplica(id) == device.uuid && (id != device.uuid) != device.shared()) return resource;
  }
  return std::nullopt;
}

// Why the device is not to be handed out now; empty where it may.
std::string Trouble(const OfferInputs& in, const resource::Resource& resource,
                    const resource::Device& device) {
  const health::DeviceHealth& verdict = in.board.Of(device.uuid);
  if (!verdict.healthy) return verdict.reason;
  if (!device.trouble.empty()) return device.trouble;
  if (!in.trouble.empty()) return in.trouble;
  if (auto holder = HeldElsewhere(in, device, resource.name)) {
    return fmt::format("a pod holds it as {}", *holder);
  }
  if (const auto at = in.device_trouble.find(device.uuid); at != in.device_trouble.end())
    return at->second;
  if (const auto at = in.resource_trouble.find(resource.name); at != in.resource_trouble.end())
    return at->second;
  if (in.index_in_doubt &&
      in.settings.plugin.device_id_strategy == config::DeviceIdStrategy::kIndex) {
    return "the GPUs' enumeration has changed and is being read again";
  }
  return "";
}

void AddStaying(const OfferInputs& in, Offer& offer) {
  std::set<std::string_view> offered;
  for (const plugin::ListedDevice& device : offer.resource.devices) offered.insert(device.id);
  const auto at = in.shown.find(offer.resource.name);
  static const plugin::UnhealthyAtKubelet never;
  const plugin::ResourceView* view = at != in.shown.end() ? at->second.view : nullptr;
  const plugin::UnhealthyAtKubelet& unhealthy =
      at != in.shown.end() && at->second.unhealthy != nullptr ? *at->second.unhealthy : never;
  plugin::Leaving leaving =
      plugin::StayingIds(view, offered, in.held, offer.resource.name, unhealthy, in.now);
  for (plugin::ListedDevice& device : leaving.stay) {
    offer.waits_for_pods = offer.waits_for_pods || in.held.Holds(offer.resource.name, device.id);
    offer.resource.devices.push_back(std::move(device));
  }
  offer.look_again = leaving.look_again;
}

Offer OfferOf(const OfferInputs& in, const resource::Resource& resource) {
  Offer offer;
  plugin::Resource& out = offer.resource;
  out.name = resource.name;
  out.scores = in.scores;
  out.policy =
      in.settings.plugin.shared_devices_allocation_policy == config::AllocationPolicy::kPacked
          ? resource::SharedPolicy::kPacked
          : resource::SharedPolicy::kDistributed;
  out.options = Options(in, resource);
  out.devices.reserve(resource.ids());
  for (const resource::Device& device : resource.devices) {
    out.units.push_back({.uuid = device.uuid,
                         .index = device.index,
                         .gpu = device.gpu,
                         .replicas = device.replicas,
                         .mig = device.mig(),
                         .mps = device.mps,
                         .cdi = !in.all_without_cdi && !in.without_cdi.contains(device.uuid),
                         .device_nodes = device.device_nodes});
    const std::string trouble = Trouble(in, resource, device);
    offer.waits_for_pods = offer.waits_for_pods || HeldElsewhere(in, device, resource.name);
    for (int n = 0; n < device.ids(); ++n) {
      out.devices.push_back({.id = device.Id(n),
                             .healthy = trouble.empty(),
                             .reason = trouble,
                             .numa_node = device.numa_node});
    }
  }
  AddStaying(in, offer);
  return offer;
}

// Resources that are not in the set and may not vanish yet: shown to the kubelet, or held.
std::set<std::string> Departing(const OfferInputs& in) {
  std::set<std::string> names;
  for (const auto& [name, shown] : in.shown) names.insert(name);
  for (const std::string& name : in.held.Resources()) {
    const auto& ids = in.held.Ids(name);
    if (name.starts_with("nvidia.com/") &&
        std::ranges::any_of(ids, [](const std::string& id) { return IsOwnIdForm(id); })) {
      names.insert(name);
    }
  }
  for (const resource::Resource& resource : in.set.resources) names.erase(resource.name);
  return names;
}

}  // namespace

std::vector<Offer> BuildOffers(const OfferInputs& in) {
  std::vector<Offer> offers;
  for (const resource::Resource& resource : in.set.resources)
    offers.push_back(OfferOf(in, resource));
  for (const std::string& name : Departing(in)) {
    resource::Resource none;
    none.name = name;
    Offer offer = OfferOf(in, none);
    offer.retire = offer.resource.devices.empty();
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace ndp::node
