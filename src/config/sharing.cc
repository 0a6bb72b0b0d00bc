#include <fmt/format.h>

#include <algorithm>

#include "config/resource_name.h"
#include "config/sections.h"

namespace ndp::config {
namespace {

// More would not fit the kubelet's 4 MiB for a single device.
constexpr std::int64_t kMaxReplicas = 100'000;
constexpr std::int64_t kMaxDeviceCount = 4096;

// An entry as written, before the naming switch has its say.
struct Written {
  SharedResource entry;
  std::optional<std::string> rename;
  Where rename_where;
  bool has_devices = false;
};

struct Section {
  bool rename_by_default = false;
  std::optional<bool> fail_requests_greater_than_one;
  std::vector<Written> entries;

  bool Replicates() const {
    return std::ranges::any_of(entries, [](const Written& w) { return w.entry.replicas > 1; });
  }
};

Result<std::string> ReadName(const Node& node) {
  NDP_TRY(const std::string text, node.Text());
  auto name = ParseResourceName(text);
  if (!name.ok()) return node.Bad(name.error().message());
  return name;
}

Result<DeviceSelector> ReadListedDevice(const Node& node) {
  NDP_TRY(const std::string text, node.Text());
  auto condition = ParseDeviceName(text);
  if (!condition.ok()) return node.Bad(condition.error().message());
  return DeviceSelector{.where = node.where(), .conditions = {*std::move(condition)}};
}

Result<SharedDevices> ReadSharedDevices(const Node& node) {
  constexpr std::string_view kWant =
      "all, a count of 1 or more, or a list of indices, MIG indices (1:0) or UUIDs";
  if (node.value().is_list()) {
    DeviceList list;
    NDP_TRY(const std::vector<Node> items, node.Items());
    if (items.empty()) return node.Bad(fmt::format("an empty list: want {}", kWant));
    for (const Node& item : items) {
      NDP_TRY(DeviceSelector device, ReadListedDevice(item));
      list.devices.push_back(std::move(device));
    }
    return SharedDevices(std::move(list));
  }
  if (const auto count = node.value().AsInt()) {
    if (*count < 1 || *count > kMaxDeviceCount) {
      return node.Bad(
          fmt::format("{} devices: want a count from 1 to {}", *count, kMaxDeviceCount));
    }
    return SharedDevices(DeviceCount{static_cast<int>(*count)});
  }
  if (node.value().AsString() == "all") return SharedDevices(AllDevices{});
  return node.WrongType(kWant);
}

Result<Written> ReadEntry(const Node& node) {
  Written out;
  out.entry.where = node.where();
  NDP_TRY(const Node name, node.At("name"));
  if (!name.set()) {
    return node.Bad("has no name: want the resource to share, such as name: nvidia.com/gpu");
  }
  NDP_TRY(out.entry.name, ReadName(name));
  NDP_TRY(const Node replicas, node.At("replicas"));
  if (!replicas.set()) return node.Bad("has no replicas: want a number of 1 or more");
  NDP_TRY(const std::int64_t count, replicas.Int());
  if (count < 1 || count > kMaxReplicas) {
    return replicas.Bad(
        fmt::format("{} replicas: want a number from 1 (not shared) to {}", count, kMaxReplicas));
  }
  out.entry.replicas = static_cast<int>(count);
  NDP_TRY(const Node rename, node.At("rename"));
  if (rename.set()) {
    NDP_TRY(out.rename, ReadName(rename));
    out.rename_where = rename.where();
  }
  NDP_TRY(const Node devices, node.At("devices"));
  out.entry.devices_where = devices.set() ? devices.where() : node.where();
  if (devices.set()) {
    out.has_devices = true;
    NDP_TRY(out.entry.devices, ReadSharedDevices(devices));
  }
  return out;
}

Result<Section> ReadSection(const Node& node) {
  Section out;
  NDP_TRY(const Node rename, node.At("renameByDefault"));
  if (rename.set()) {
    NDP_TRY(out.rename_by_default, rename.Bool());
  }
  NDP_TRY(const Node fail, node.At("failRequestsGreaterThanOne"));
  if (fail.set()) {
    NDP_TRY(out.fail_requests_greater_than_one, fail.Bool());
  }
  NDP_TRY(const Node resources, node.At("resources"));
  NDP_TRY(const std::vector<Node> items, resources.Items());
  for (const Node& item : items) {
    if (!item.set() || !item.value().is_map()) {
      return item.WrongType("a map with name and replicas");
    }
    NDP_TRY(Written entry, ReadEntry(item));
    out.entries.push_back(std::move(entry));
  }
  return out;
}

// Where two things in the file contradict each other.
Error Contradiction(const Where& first, const Where& second, std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("{} and {} {}", first.Text(), second.Text(), what)};
}

std::vector<const DeviceSelector*> Listed(const SharedResource& entry) {
  std::vector<const DeviceSelector*> out;
  if (const auto* list = std::get_if<DeviceList>(&entry.devices)) {
    for (const DeviceSelector& device : list->devices) out.push_back(&device);
  }
  return out;
}

// Of entries whose devices and names count.
Status CheckAgainstEachOther(const std::vector<SharedResource>& entries) {
  std::vector<const DeviceSelector*> devices;
  for (const SharedResource& entry : entries) {
    for (const DeviceSelector* device : Listed(entry)) {
      for (const DeviceSelector* other : devices) {
        if (device->conditions == other->conditions) {
          return Contradiction(other->where, device->where,
                               fmt::format("both name device {}: a device may be in one entry only",
                                           device->Text()));
        }
      }
      devices.push_back(device);
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const SharedResource& a = entries[j];
      const SharedResource& b = entries[i];
      if (a.name == b.name && a.devices == SharedDevices(AllDevices{}) && b.devices == a.devices) {
        return Contradiction(a.where, b.where,
                             fmt::format("both take all devices of {}: want one entry, or devices "
                                         "that tell them apart",
                                         a.name));
      }
      if (a.offered_as == b.offered_as && a.replicas != b.replicas) {
        return Contradiction(a.where, b.where,
                             fmt::format("give {} different numbers of replicas ({} and {}): want "
                                         "one number, or different names",
                                         a.offered_as, a.replicas, b.replicas));
      }
    }
  }
  return {};
}

// Without naming two entries of one resource come to the larger number of replicas upstream.
Status AddMerged(std::vector<SharedResource>& entries, const Written& written, bool* saw_devices,
                 std::vector<std::string>& warnings) {
  const auto same = std::ranges::find(entries, written.entry.name, &SharedResource::name);
  *saw_devices = *saw_devices || written.has_devices;
  if (same == entries.end()) {
    entries.push_back(written.entry);
    return {};
  }
  if (same->replicas != written.entry.replicas && !*saw_devices) {
    return Contradiction(same->where, written.entry.where,
                         fmt::format("give {} different numbers of replicas ({} and {}): want one "
                                     "entry",
                                     same->name, same->replicas, written.entry.replicas));
  }
  same->replicas = std::max(same->replicas, written.entry.replicas);
  warnings.push_back(fmt::format("{} and {} both share {}: all its devices get {} replicas",
                                 same->where.Text(), written.entry.where.Text(), same->name,
                                 same->replicas));
  return {};
}

void NoteIgnored(const Written& written, NamingSwitch& naming) {
  const SharedResource& entry = written.entry;
  if (written.rename) {
    naming.ignored.push_back(fmt::format("{}: {}", written.rename_where.Text(), *written.rename));
  }
  if (written.has_devices && entry.devices != SharedDevices(AllDevices{})) {
    naming.ignored.push_back(entry.devices_where.Text());
  }
}

Result<std::string> OfferedAs(const Written& written, const Section& section, bool naming) {
  const SharedResource& entry = written.entry;
  if (naming && written.rename) return *written.rename;
  if (!section.rename_by_default || entry.replicas == 1) return entry.name;
  auto name = ParseResourceName(entry.name + ".shared");
  if (name.ok()) return name;
  return Error(Code::kInvalidArgument,
               fmt::format("{}: {}", entry.where.Text(), name.error().message()));
}

Result<std::vector<SharedResource>> Resolve(Section& section, NamingSwitch& naming,
                                            std::vector<std::string>& warnings) {
  std::vector<SharedResource> out;
  bool saw_devices = false;
  for (Written& written : section.entries) {
    NDP_TRY(written.entry.offered_as, OfferedAs(written, section, naming.on));
    if (naming.on) {
      out.push_back(written.entry);
      continue;
    }
    NoteIgnored(written, naming);
    written.entry.devices = AllDevices{};
    NDP_TRY(AddMerged(out, written, &saw_devices, warnings));
  }
  if (naming.on) NDP_TRY(CheckAgainstEachOther(out));
  return out;
}

}  // namespace

Result<Sharing> ReadSharing(const Node& section, NamingSwitch& naming,
                            std::vector<std::string>& warnings) {
  NDP_TRY(const Node time_slicing_node, section.At("timeSlicing"));
  NDP_TRY(const Node mps_node, section.At("mps"));
  NDP_TRY(Section time_slicing, ReadSection(time_slicing_node));
  NDP_TRY(Section mps, ReadSection(mps_node));

  const bool use_mps = mps.Replicates();
  if (use_mps && time_slicing.Replicates()) {
    warnings.push_back(fmt::format("{} is ignored: {} shares devices too, and wins",
                                   time_slicing_node.where().Text(), mps_node.where().Text()));
  }
  Section& used = use_mps ? mps : time_slicing;
  Sharing out;
  NDP_TRY(out.resources, Resolve(used, naming, warnings));
  out.rename_by_default = used.rename_by_default;
  out.fail_requests_greater_than_one = used.fail_requests_greater_than_one.value_or(use_mps);
  if (used.Replicates()) {
    out.strategy = use_mps ? SharingStrategy::kMps : SharingStrategy::kTimeSlicing;
  }
  return out;
}

}  // namespace ndp::config
