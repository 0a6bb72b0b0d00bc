#include "resource/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/text.h"

namespace ndp::resource {
namespace {

// One entry of `sharing` and the devices that it gets.
struct Claim {
  const config::SharedResource* entry = nullptr;
  std::vector<std::size_t> devices;
};

// Of devices, not of GPUs: an index alone is a full GPU.
struct Names {
  const Device& device;
  const inventory::Inventory& inventory;

  bool operator()(const config::GpuIndex& it) const {
    return !device.mig() && device.gpu_index == static_cast<unsigned>(it.index);
  }
  bool operator()(const config::MigIndex& it) const {
    return device.mig_slot == static_cast<unsigned>(it.mig) &&
           device.gpu_index == static_cast<unsigned>(it.gpu);
  }
  bool operator()(const config::DeviceUuid& it) const { return it.text == device.uuid; }
  bool operator()(const config::PciBusId& it) const {
    return std::ranges::any_of(inventory.gpus, [&](const inventory::Gpu& gpu) {
      return gpu.pci_bus_id() == it.text && gpu.uuid() == device.gpu_uuid;
    });
  }
  bool operator()(const config::NamePattern&) const { return false; }
  bool operator()(const config::MinMemory&) const { return false; }
};

std::string DescribeDevices(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", device.index, device.uuid);
  }
  return text.empty() ? "none" : text;
}

// An error, or a warning and no more.
Status Complain(bool refuse, std::string message, std::vector<std::string>& warnings) {
  if (refuse) return Error(Code::kInvalidArgument, std::move(message));
  warnings.push_back(std::move(message));
  return {};
}

// Deals the devices of one resource out to the entries that share it.
class Dealer {
 public:
  Dealer(const std::vector<Device>& devices, const inventory::Inventory& inventory,
         const SharingChecks& checks, std::vector<std::string>& warnings)
      : devices_(devices),
        inventory_(inventory),
        checks_(checks),
        warnings_(warnings),
        owner_(devices.size(), nullptr) {}

  Result<std::vector<Claim>> Deal(const std::vector<const config::SharedResource*>& entries) {
    std::vector<Claim> claims;
    for (const auto* entry : entries) claims.push_back({entry, {}});
    for (Claim& claim : claims) {
      const auto* list = std::get_if<config::DeviceList>(&claim.entry->devices);
      if (list != nullptr) NDP_TRY(DealList(*list, claim));
    }
    for (Claim& claim : claims) {
      const auto* count = std::get_if<config::DeviceCount>(&claim.entry->devices);
      if (count != nullptr) NDP_TRY(DealCount(count->count, claim));
    }
    const config::SharedResource* all = nullptr;
    for (Claim& claim : claims) {
      if (!std::holds_alternative<config::AllDevices>(claim.entry->devices)) continue;
      if (all != nullptr) {
        return Error(Code::kInvalidArgument,
                     fmt::format("{} and {} both take all devices of {}: want one entry",
                                 all->where.Text(), claim.entry->where.Text(), all->name));
      }
      all = claim.entry;
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        if (owner_[i] == nullptr) Give(i, claim);
      }
    }
    return claims;
  }

 private:
  void Give(std::size_t device, Claim& claim) {
    owner_[device] = claim.entry;
    claim.devices.push_back(device);
  }

  Status DealList(const config::DeviceList& list, Claim& claim) {
    for (const config::DeviceSelector& selector : list.devices) {
      bool any = false;
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        const bool named =
            std::ranges::all_of(selector.conditions, [&](const config::Condition& condition) {
              return std::visit(Names{devices_[i], inventory_}, condition);
            });
        if (!named) continue;
        any = true;
        if (owner_[i] == nullptr) {
          Give(i, claim);
          continue;
        }
        NDP_TRY(Complain(checks_.refuse_contradictions, NamedTwice(selector, i, claim), warnings_));
      }
      if (any) continue;
      NDP_TRY(Complain(checks_.refuse_unknown,
                       fmt::format("{}: {} is no device of {}: there are {}", selector.where.Text(),
                                   selector.Text(), claim.entry->name, DescribeDevices(devices_)),
                       warnings_));
    }
    return {};
  }

  std::string NamedTwice(const config::DeviceSelector& selector, std::size_t device,
                         const Claim& claim) const {
    const Device& named = devices_[device];
    if (owner_[device] == claim.entry) {
      return fmt::format("{}: {} names device {} ({}) a second time", selector.where.Text(),
                         selector.Text(), named.index, named.uuid);
    }
    return fmt::format("{} and {} both name device {} ({}): a device may be in one entry only",
                       owner_[device]->where.Text(), claim.entry->where.Text(), named.index,
                       named.uuid);
  }

  Status DealCount(int count, Claim& claim) {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (static_cast<int>(claim.devices.size()) == count) return {};
      if (owner_[i] == nullptr) Give(i, claim);
    }
    if (static_cast<int>(claim.devices.size()) == count) return {};
    return Complain(checks_.refuse_unknown,
                    fmt::format("{}: {} devices of {}: want at most {}, what other entries leave",
                                claim.entry->devices_where.Text(), count, claim.entry->name,
                                claim.devices.size()),
                    warnings_);
  }

  const std::vector<Device>& devices_;
  const inventory::Inventory& inventory_;
  const SharingChecks& checks_;
  std::vector<std::string>& warnings_;
  std::vector<const config::SharedResource*> owner_;
};

void Offer(SharedOut& out, const std::string& name, Device device) {
  Resource& resource = out.resources[name];
  resource.name = name;
  resource.devices.push_back(std::move(device));
}

void OfferShared(SharedOut& out, const config::Sharing& sharing,
                 const config::SharedResource& entry, Device device) {
  const bool mps = sharing.strategy == config::SharingStrategy::kMps;
  if (entry.replicas > 1) {
    device.replicas = entry.replicas;
    device.mps = mps;
    if (mps && device.mig() && device.trouble.empty()) {
      device.trouble = fmt::format("{}: MPS does not share MIG devices", entry.where.Text());
    }
    Resource& resource = out.resources[entry.offered_as];
    resource.sharing = sharing.strategy;
    resource.fail_requests_greater_than_one = sharing.fail_requests_greater_than_one;
    out.entries.emplace(entry.offered_as, &entry);
  }
  Offer(out, entry.offered_as, std::move(device));
}

// Who has a device of an MPS resource gets the way to its daemon: one that the daemon does not
// serve must not be among them.
Status CheckMps(SharedOut& out, bool refuse) {
  for (auto& [name, resource] : out.resources) {
    if (resource.sharing != config::SharingStrategy::kMps) continue;
    const config::SharedResource& entry = *out.entries.at(name);
    for (Device& device : resource.devices) {
      if (device.mps) continue;
      const std::string what = fmt::format(
          "{}: {} would hold devices with MPS and without ({}): want devices: all, or "
          "a rename",
          entry.where.Text(), name, device.index);
      if (refuse) return Error(Code::kInvalidArgument, what);
      if (device.trouble.empty()) device.trouble = what;
    }
  }
  return {};
}

Status CheckReplicas(const SharedOut& out, const config::Sharing& sharing) {
  for (const config::SharedResource& entry : sharing.resources) {
    const auto first = out.entries.find(entry.offered_as);
    if (entry.replicas < 2 || first == out.entries.end()) continue;
    if (first->second->replicas == entry.replicas) continue;
    return Error(Code::kInvalidArgument,
                 fmt::format("{} and {} give {} different numbers of replicas ({} and {}): want "
                             "one number, or different names",
                             first->second->where.Text(), entry.where.Text(), entry.offered_as,
                             first->second->replicas, entry.replicas));
  }
  return {};
}

}  // namespace

Result<SharedOut> ShareDevices(const config::Sharing& sharing,
                               const inventory::Inventory& inventory,
                               std::map<std::string, std::vector<Device>> by_resource,
                               const SharingChecks& checks) {
  SharedOut out;
  std::map<std::string, std::vector<const config::SharedResource*>> entries;
  for (const config::SharedResource& entry : sharing.resources) {
    if (by_resource.contains(entry.name)) {
      entries[entry.name].push_back(&entry);
    } else if (!by_resource.empty()) {
      std::vector<std::string> names;
      for (const auto& [name, devices] : by_resource) names.push_back(name);
      out.warnings.push_back(fmt::format("{}: this node has no {}: it has {}", entry.where.Text(),
                                         entry.name, Join(names, ", ")));
    }
  }
  for (auto& [name, devices] : by_resource) {
    Dealer dealer(devices, inventory, checks, out.warnings);
    NDP_TRY(const std::vector<Claim> claims, dealer.Deal(entries[name]));
    std::vector<const config::SharedResource*> owner(devices.size(), nullptr);
    for (const Claim& claim : claims) {
      for (const std::size_t i : claim.devices) owner[i] = claim.entry;
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (owner[i] == nullptr) {
        Offer(out, name, std::move(devices[i]));
      } else {
        OfferShared(out, sharing, *owner[i], std::move(devices[i]));
      }
    }
  }
  NDP_TRY(CheckReplicas(out, sharing));
  NDP_TRY(CheckMps(out, checks.refuse_contradictions));
  return out;
}

}  // namespace ndp::resource
