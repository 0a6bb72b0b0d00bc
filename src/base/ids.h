// Device ids as the kubelet sees them.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace ndp {

// "GPU-5f3a::3" is replica 3 of a shared GPU; "GPU-5f3a" the whole device (replica -1).
struct DeviceId {
  std::string uuid;
  int replica = -1;

  bool shared() const { return replica >= 0; }
  std::string Text() const;
  auto operator<=>(const DeviceId&) const = default;
};

// Any text is an id: what is not `<uuid>::<n>` is a whole device's.
DeviceId ParseDeviceId(std::string_view text);

// The uuid part of an id, without a copy.
std::string_view StripReplica(std::string_view id);

// GPU-… or MIG-…: the forms this plugin hands out. Other plugins may use nvidia.com resources too.
bool IsOwnIdForm(std::string_view id);

}  // namespace ndp
