#include "resource/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.h"
#include "resource/list_size.h"
#include "resource/mig_layout.h"
#include "resource/offered_devices.h"
#include "resource/selection.h"
#include "resource/sharing.h"

namespace ndp::resource {
namespace {

constexpr std::size_t kMaxNameLength = 63;
constexpr int kSameNode = 40;  // NVML's topology levels
constexpr int kAcross = 50;

// Names from the configuration have been checked there; this holds for those made of a profile too.
Status CheckName(const Resource& resource) {
  if (resource.name.size() <= kMaxNameLength && IsDns1123Subdomain(resource.base_name())) return {};
  return Error(Code::kInvalidArgument,
               fmt::format("resource name {}: want at most {} characters, those after the slash a "
                           "DNS-1123 subdomain",
                           resource.name, kMaxNameLength));
}

// Why the list would not reach the kubelet; empty where it does.
std::string ListTrouble(const Resource& resource, const config::SharedResource* entry) {
  const std::uint64_t bytes = ListBytes(resource);
  if (bytes <= kMaxListBytes) return "";
  std::string text =
      fmt::format("the device list of {} would take {} bytes, over the kubelet's limit of {}",
                  resource.name, bytes, kMaxListBytes);
  if (entry == nullptr) return text;
  return fmt::format("{}: {} replicas: {}: want at most {} replicas", entry->where.Text(),
                     entry->replicas, text, MostReplicas(resource));
}

// Takes devices out until the list fits: the kubelet ends the stream at a longer one, and then
// nothing of the resource could be had. Those that were offered before stay before those that were
// not.
void KeepWhatFits(Resource& resource, const std::string& trouble, const Resource* former,
                  ResourceSet& set) {
  const auto newcomer = [former](const Device& device) {
    return former == nullptr || !std::ranges::any_of(former->devices, [&](const Device& known) {
             return known.uuid == device.uuid;
           });
  };
  const auto out = [&](auto at) {
    set.not_offered.push_back({.index = at->index, .uuid = at->uuid, .reason = trouble});
    resource.devices.erase(at);
  };
  while (ListBytes(resource) > kMaxListBytes) {
    const auto last =
        std::ranges::find_if(resource.devices.rbegin(), resource.devices.rend(), newcomer);
    out(last == resource.devices.rend() ? resource.devices.end() - 1 : last.base() - 1);
  }
  set.warnings.push_back(trouble);
}

// Two kinds of device under one name: a pod cannot tell which it gets.
void NoteMixture(const Resource& resource, std::vector<std::string>& warnings) {
  std::set<std::string> kinds;
  for (const Device& device : resource.devices) {
    if (!device.trouble.empty()) continue;
    kinds.insert(device.mig() ? "MIG " + device.profile : std::string("full GPUs"));
  }
  if (kinds.size() < 2) return;
  warnings.push_back(fmt::format("{} holds devices of different kinds: {}", resource.name,
                                 Join(std::vector(kinds.begin(), kinds.end()), ", ")));
}

void SortByIndex(Resource& resource) {
  std::ranges::stable_sort(resource.devices, {}, [](const Device& device) {
    return std::tie(device.gpu_index, device.mig_slot, device.uuid);
  });
}

}  // namespace

Result<ResourceSet> Build(const config::Settings& settings, const inventory::Inventory& inventory,
                          const BuildContext& context) {
  ResourceSet set;
  const MigLayouts layouts = LayoutsOf(inventory);
  Selection selection = SelectGpus(settings.devices, inventory);
  OfferedDevices offered =
      OfferDevices(settings, inventory, selection, layouts, context.previous_scan);
  // A GPU that cannot be read may be the very one that an entry names.
  const SharingChecks checks = {.refuse_contradictions = context.loading,
                                .refuse_unknown = context.loading && inventory.broken.empty()};
  NDP_TRY(SharedOut shared,
          ShareDevices(settings.sharing, inventory, std::move(offered.by_resource), checks));

  set.not_offered = std::move(selection.excluded);
  std::ranges::move(offered.not_offered, std::back_inserter(set.not_offered));
  for (auto* warnings : {&selection.warnings, &offered.warnings, &shared.warnings}) {
    std::ranges::move(*warnings, std::back_inserter(set.warnings));
  }
  for (auto& [name, resource] : shared.resources) {
    SortByIndex(resource);
    NDP_TRY(CheckName(resource));
    const auto entry = shared.entries.find(name);
    const std::string trouble =
        ListTrouble(resource, entry == shared.entries.end() ? nullptr : entry->second);
    if (!trouble.empty()) {
      if (context.loading) return Error(Code::kInvalidArgument, trouble);
      KeepWhatFits(resource, trouble, context.former ? context.former->Find(name) : nullptr, set);
    }
    NoteMixture(resource, set.warnings);
    set.resources.push_back(std::move(resource));
  }
  return set;
}

PairScores ScoresOf(const inventory::Inventory& inventory) {
  const int count = static_cast<int>(inventory.gpus.size());
  const auto at = [&inventory](int i) -> const inventory::Gpu& {
    return inventory.gpus[static_cast<std::size_t>(i)];
  };
  PairScores scores(count);
  for (int a = 0; a < count; ++a) scores.SetNumaNode(a, at(a).numa_node);
  for (int a = 0; a < count; ++a) {
    for (int b = 0; b < a; ++b) {
      inventory::LinkMatrix::Pair link;
      link.ancestor = scores.SameNumaNode(a, b) ? kSameNode : kAcross;
      if (inventory.links) {
        const auto& pairs = inventory.links->pairs;
        const auto it = pairs.find({at(a).uuid(), at(b).uuid()});
        if (it != pairs.end()) link = it->second;
      }
      scores.Set(a, b, PairScore(link.ancestor, link.nvlinks));
    }
  }
  return scores;
}

}  // namespace ndp::resource
