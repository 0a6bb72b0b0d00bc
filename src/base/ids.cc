#include "base/ids.h"

#include "base/text.h"

namespace ndp {

std::string DeviceId::Text() const {
  return shared() ? uuid + "::" + std::to_string(replica) : uuid;
}

DeviceId ParseDeviceId(std::string_view text) {
  const std::size_t at = text.rfind("::");
  if (at != std::string_view::npos) {
    if (auto n = ParseUnsigned(text.substr(at + 2)); n && *n <= 0x7FFFFFFF) {
      return {std::string(text.substr(0, at)), static_cast<int>(*n)};
    }
  }
  return {std::string(text), -1};
}

std::string_view StripReplica(std::string_view id) {
  const std::size_t at = id.rfind("::");
  if (at != std::string_view::npos && ParseUnsigned(id.substr(at + 2))) return id.substr(0, at);
  return id;
}

bool IsOwnIdForm(std::string_view id) { return id.starts_with("GPU-") || id.starts_with("MIG-"); }

}  // namespace ndp
