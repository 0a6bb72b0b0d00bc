// The devices of one resource as the allocation policies see them, and the way from an id on the
// wire to one of them. Built once per resource snapshot; then read by any thread.
//
// Replica ids are not stored: 8 GPUs × 7,000 replicas would be 5 MB of text. They are taken apart
// and put together where they are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ndp::resource {

struct PoolDevice {
  std::string uuid;
  int gpu = 0;       // position of the (parent) GPU in PairScores
  int replicas = 0;  // 0: not shared, its id is the uuid; else ids are `<uuid>::<0 … replicas-1>`
  bool mig = false;

  int slots() const { return replicas > 0 ? replicas : 1; }
  bool operator==(const PoolDevice&) const = default;
};

class DevicePool {
 public:
  DevicePool() = default;
  // In the order in which ties are decided: lowest first.
  explicit DevicePool(std::vector<PoolDevice> devices);

  const std::vector<PoolDevice>& devices() const { return devices_; }
  // Ids are numbered densely, by device and then by replica: 0 … size()-1.
  std::uint32_t size() const { return offsets_.back(); }
  std::uint32_t FirstSlot(std::size_t device) const { return offsets_[device]; }
  // Whole GPUs only, none of them shared.
  bool exclusive() const { return exclusive_; }

  // The slot of an id; nullopt where the resource has no such id.
  std::optional<std::uint32_t> Find(std::string_view id) const;
  std::string Id(std::uint32_t slot) const;
  std::size_t DeviceOf(std::uint32_t slot) const;

 private:
  std::optional<std::size_t> FindDevice(std::string_view uuid) const;

  std::vector<PoolDevice> devices_;
  std::vector<std::uint32_t> offsets_{0};  // first slot of each device, and the end
  std::vector<std::uint32_t> by_uuid_;     // devices, sorted by uuid
  bool exclusive_ = true;
};

}  // namespace ndp::resource
