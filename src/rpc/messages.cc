#include "rpc/messages.h"

#include "device_plugin.pb.h"

namespace ndp::rpc {

void Fill(const plugin::ResourceView& view, v1beta1::ListAndWatchResponse& message) {
  message.mutable_devices()->Reserve(static_cast<int>(view.devices().size()));
  for (const plugin::ListedDevice& device : view.devices()) {
    v1beta1::Device& out = *message.add_devices();
    out.set_id(device.id);
    out.set_health(device.healthy ? "Healthy" : "Unhealthy");
    // Node 0 is a node: present, with the default value as its ID.
    if (device.numa_node) out.mutable_topology()->add_nodes()->set_id(*device.numa_node);
  }
}

void Fill(const plugin::ContainerAnswer& answer, v1beta1::ContainerAllocateResponse& message) {
  for (const auto& [key, value] : answer.envs) {
    (*message.mutable_envs())[std::string(key)] = value;
  }
  for (const auto* mount : answer.mounts) {
    v1beta1::Mount& out = *message.add_mounts();
    out.set_container_path(mount->container_path);
    out.set_host_path(mount->host_path);
  }
  for (const auto* spec : answer.device_specs) {
    v1beta1::DeviceSpec& out = *message.add_devices();
    out.set_container_path(spec->container_path);
    out.set_host_path(spec->host_path);
    out.set_permissions("rw");
  }
  if (answer.annotation) {
    (*message.mutable_annotations())[answer.annotation->first] = answer.annotation->second;
  }
  for (const std::string_view name : answer.cdi_names) {
    message.add_cdi_devices()->set_name(name.data(), name.size());
  }
}

}  // namespace ndp::rpc
