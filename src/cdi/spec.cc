#include "cdi/spec.h"

#include <algorithm>

namespace ndp::cdi {
namespace {

template <typename T>
void AppendAll(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void Edits::Append(const Edits& other) {
  AppendAll(env, other.env);
  AppendAll(device_nodes, other.device_nodes);
  AppendAll(net_devices, other.net_devices);
  AppendAll(hooks, other.hooks);
  AppendAll(mounts, other.mounts);
  if (other.intel_rdt) intel_rdt = other.intel_rdt;
  AppendAll(additional_gids, other.additional_gids);
}

const Device* Spec::Find(const std::string& name) const {
  auto found = std::ranges::find(devices, name, &Device::name);
  return found == devices.end() ? nullptr : &*found;
}

}  // namespace ndp::cdi
