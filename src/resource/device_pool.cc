#include "resource/device_pool.h"

#include <algorithm>
#include <numeric>

#include "base/result.h"

namespace ndp::resource {
namespace {

// More than any resource has replicas, and within 32 bits.
constexpr std::size_t kMostDigits = 9;

struct SplitId {
  std::string_view uuid;
  std::uint32_t replica = 0;
};

// `<uuid>::<n>` taken apart from its end; nullopt where the text does not end so. A number is only
// as it is written in an id: "07" is not the id of replica 7. Tens of thousands of ids can be in
// one request, so this neither searches nor copies.
std::optional<SplitId> SplitReplica(std::string_view id) {
  std::size_t at = id.size();
  std::uint32_t replica = 0;
  std::uint32_t place = 1;
  while (at > 0 && id[at - 1] >= '0' && id[at - 1] <= '9') {
    if (id.size() - at == kMostDigits) return std::nullopt;
    replica += static_cast<std::uint32_t>(id[at - 1] - '0') * place;
    place *= 10;
    --at;
  }
  const std::size_t digits = id.size() - at;
  if (digits == 0 || (digits > 1 && id[at] == '0')) return std::nullopt;
  if (at < 2 || id[at - 1] != ':' || id[at - 2] != ':') return std::nullopt;
  return SplitId{id.substr(0, at - 2), replica};
}

}  // namespace

DevicePool::DevicePool(std::vector<PoolDevice> devices) : devices_(std::move(devices)) {
  offsets_.reserve(devices_.size() + 1);
  for (const PoolDevice& device : devices_) {
    offsets_.push_back(offsets_.back() + static_cast<std::uint32_t>(device.slots()));
    if (device.mig || device.replicas > 0) exclusive_ = false;
  }
  by_uuid_.resize(devices_.size());
  std::iota(by_uuid_.begin(), by_uuid_.end(), 0U);
  std::ranges::sort(by_uuid_, {}, [this](std::uint32_t i) { return devices_[i].uuid; });
}

std::optional<std::size_t> DevicePool::FindDevice(std::string_view uuid) const {
  const auto uuid_of = [this](std::uint32_t i) { return std::string_view(devices_[i].uuid); };
  const auto it = std::ranges::lower_bound(by_uuid_, uuid, {}, uuid_of);
  if (it == by_uuid_.end() || devices_[*it].uuid != uuid) return std::nullopt;
  return *it;
}

std::optional<std::uint32_t> DevicePool::Find(std::string_view id) const {
  if (const auto split = SplitReplica(id)) {
    const auto device = FindDevice(split->uuid);
    if (device && split->replica < static_cast<std::uint32_t>(devices_[*device].replicas)) {
      return offsets_[*device] + split->replica;
    }
  }
  const auto device = FindDevice(id);
  if (!device || devices_[*device].replicas > 0) return std::nullopt;
  return offsets_[*device];
}

std::size_t DevicePool::DeviceOf(std::uint32_t slot) const {
  NDP_CHECK(slot < size());
  const auto it = std::ranges::upper_bound(offsets_, slot);
  return static_cast<std::size_t>(it - offsets_.begin()) - 1;
}

std::string DevicePool::Id(std::uint32_t slot) const {
  const std::size_t index = DeviceOf(slot);
  const PoolDevice& device = devices_[index];
  if (device.replicas == 0) return device.uuid;
  return device.uuid + "::" + std::to_string(slot - offsets_[index]);
}

}  // namespace ndp::resource
