#include "resource/list_size.h"

#include <algorithm>
#include <string_view>

namespace ndp::resource {
namespace {

constexpr std::string_view kHealthy = "Healthy";
constexpr std::string_view kUnhealthy = "Unhealthy";
constexpr std::uint64_t kTag = 1;      // every field number here is below 16
constexpr std::size_t kSeparator = 2;  // "::"

std::uint64_t VarintBytes(std::uint64_t value) {
  std::uint64_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

// A length-delimited field.
std::uint64_t Field(std::uint64_t length) { return kTag + VarintBytes(length) + length; }

// All replica ids of a device, by the number of digits of the replica.
std::uint64_t SharedBytes(const Device& device, std::uint64_t replicas) {
  std::uint64_t bytes = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 10;
  for (std::size_t digits = 1; first < replicas; ++digits) {
    const std::uint64_t count = std::min(end, replicas) - first;
    bytes +=
        count * ListEntryBytes(device.uuid.size() + kSeparator + digits, false, device.numa_node);
    first = end;
    end *= 10;
  }
  return bytes;
}

std::uint64_t BytesWith(const Resource& resource, std::optional<int> replicas) {
  std::uint64_t bytes = 0;
  for (const Device& device : resource.devices) {
    if (device.shared()) {
      bytes += SharedBytes(device, static_cast<std::uint64_t>(replicas.value_or(device.replicas)));
    } else {
      bytes += ListEntryBytes(device.uuid.size(), false, device.numa_node);
    }
  }
  return bytes;
}

}  // namespace

std::uint64_t ListEntryBytes(std::size_t id_length, bool healthy, std::optional<int> numa_node) {
  std::uint64_t bytes = Field(id_length) + Field((healthy ? kHealthy : kUnhealthy).size());
  if (numa_node) {
    // An int64 of value 0 is not written at all: the node is then an empty message. A negative
    // one takes ten bytes.
    const auto id = static_cast<std::uint64_t>(static_cast<std::int64_t>(*numa_node));
    const std::uint64_t node = id == 0 ? 0 : kTag + VarintBytes(id);
    bytes += Field(Field(node));
  }
  return Field(bytes);
}

std::uint64_t ListBytes(const Resource& resource) { return BytesWith(resource, std::nullopt); }

int MostReplicas(const Resource& resource) {
  int fits = 0;
  int too_many = static_cast<int>(kMaxListBytes);
  while (too_many - fits > 1) {
    const int middle = fits + (too_many - fits) / 2;
    (BytesWith(resource, middle) <= kMaxListBytes ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace ndp::resource
