#include "resource/preferred.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "resource/partition.h"

namespace ndp::resource {
namespace {

constexpr std::size_t kIdsNamed = 3;

// Slots of a pool, one bit each: 8 × 7,000 replicas in 7 KB, in ascending order without a sort.
class SlotSet {
 public:
  explicit SlotSet(std::uint32_t slots) : bits_(slots, false) {}

  void Add(std::uint32_t slot) {
    if (!bits_[slot]) ++count_;
    bits_[slot] = true;
  }
  bool Has(std::uint32_t slot) const { return bits_[slot]; }
  int count() const { return count_; }

 private:
  std::vector<bool> bits_;
  int count_ = 0;
};

// "x, y, z and 4 more"
std::string NameSome(const std::vector<std::string_view>& ids) {
  const std::size_t named = std::min(ids.size(), kIdsNamed);
  std::string text;
  for (std::size_t i = 0; i < named; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ids[i]);
  }
  if (ids.size() > named) text += fmt::format(" and {} more", ids.size() - named);
  return text;
}

Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

Result<SlotSet> Resolve(const DevicePool& pool, std::span<const std::string_view> ids,
                        std::string_view list) {
  SlotSet slots(pool.size());
  std::vector<std::string_view> unknown;
  for (const std::string_view id : ids) {
    if (const auto slot = pool.Find(id)) {
      slots.Add(*slot);
    } else {
      unknown.push_back(id);
    }
  }
  if (unknown.empty()) return slots;
  std::ranges::sort(unknown);
  return Invalid(
      fmt::format("{} device ids that this resource does not have: {}", list, NameSome(unknown)));
}

Status CheckNumbers(const PreferredRequest& request, const SlotSet& available,
                    const SlotSet& required) {
  const auto numbers = fmt::format("asked for {}, {} available, {} must be included", request.size,
                                   available.count(), required.count());
  if (request.size < 0) return Invalid("allocation size is negative: " + numbers);
  if (request.size < required.count()) {
    return Invalid("allocation size is below the number of must-include devices: " + numbers);
  }
  if (request.size > available.count()) return Invalid("too few devices available: " + numbers);
  return {};
}

Status CheckRequired(const DevicePool& pool, const PreferredRequest& request,
                     const SlotSet& available) {
  std::vector<std::string_view> missing;
  for (const std::string_view id : request.must_include) {
    if (!available.Has(*pool.Find(id))) missing.push_back(id);
  }
  if (missing.empty()) return {};
  std::ranges::sort(missing);
  return Invalid(
      fmt::format("must-include devices that are not available: {}: asked for {}, {} "
                  "available, {} must be included",
                  NameSome(missing), request.size, available.count(), request.must_include.size()));
}

// Whole GPUs: a device is one slot, and the slots are the GPUs.
std::vector<std::uint32_t> ChooseGpus(const DevicePool& pool, const PairScores& scores, int size,
                                      const SlotSet& available, const SlotSet& required) {
  std::vector<std::uint32_t> slots;
  std::vector<int> gpus;
  std::vector<int> required_at;
  for (std::uint32_t slot = 0; slot < pool.size(); ++slot) {
    if (!available.Has(slot)) continue;
    if (required.Has(slot)) required_at.push_back(static_cast<int>(slots.size()));
    slots.push_back(slot);
    gpus.push_back(pool.devices()[slot].gpu);
  }
  std::vector<std::uint32_t> chosen;
  for (const int at : BestGroup(scores.Of(gpus), required_at, size)) {
    chosen.push_back(slots[static_cast<std::size_t>(at)]);
  }
  return chosen;
}

std::vector<std::uint32_t> ChooseShares(const DevicePool& pool, const PairScores& scores,
                                        SharedPolicy policy, int size, const SlotSet& available,
                                        const SlotSet& required) {
  const auto slots_of = [&pool](std::size_t device) {
    return std::pair(pool.FirstSlot(device), pool.FirstSlot(device + 1));
  };
  std::vector<SharedDevice> devices;
  for (std::size_t i = 0; i < pool.devices().size(); ++i) {
    SharedDevice device{.gpu = pool.devices()[i].gpu, .total = pool.devices()[i].slots()};
    const auto [first, end] = slots_of(i);
    for (std::uint32_t slot = first; slot < end; ++slot) {
      device.available += available.Has(slot) ? 1 : 0;
      device.required += required.Has(slot) ? 1 : 0;
    }
    devices.push_back(device);
  }

  const std::vector<int> shares = Share(devices, scores, policy, size);
  std::vector<std::uint32_t> chosen;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    int others = shares[i] - devices[i].required;
    const auto [first, end] = slots_of(i);
    for (std::uint32_t slot = first; slot < end; ++slot) {
      if (required.Has(slot)) {
        chosen.push_back(slot);
      } else if (others > 0 && available.Has(slot)) {
        chosen.push_back(slot);
        --others;
      }
    }
  }
  return chosen;
}

}  // namespace

Result<std::vector<std::string>> Prefer(const DevicePool& pool, const PairScores& scores,
                                        SharedPolicy policy, const PreferredRequest& request) {
  NDP_TRY(const SlotSet available, Resolve(pool, request.available, "available"));
  NDP_TRY(const SlotSet required, Resolve(pool, request.must_include, "must-include"));
  NDP_TRY(CheckRequired(pool, request, available));
  NDP_TRY(CheckNumbers(request, available, required));
  if (request.size == 0) return std::vector<std::string>{};

  const std::vector<std::uint32_t> chosen =
      pool.exclusive() ? ChooseGpus(pool, scores, request.size, available, required)
                       : ChooseShares(pool, scores, policy, request.size, available, required);
  std::vector<std::string> ids;
  ids.reserve(chosen.size());
  for (const std::uint32_t slot : chosen) ids.push_back(pool.Id(slot));
  return ids;
}

}  // namespace ndp::resource
