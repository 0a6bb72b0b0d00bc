#include "cdi/extra_classes.h"

#include <fmt/format.h>

#include "cdi/names.h"
#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

Edits DiscoverGds(const Discovery& discovery) {
  Edits edits;
  AddDeviceNodesIfThere(discovery, GlobDevices(discovery, "/dev", "nvidia-fs*"), edits);
  if (edits.device_nodes.empty()) return edits;
  if (discovery.driver().IsDirectory("/run/udev")) {
    AddMount(discovery, "/run/udev", edits);
  }
  if (discovery.driver().IsFile("/etc/cufile.json")) {
    AddMount(discovery, "/etc/cufile.json", edits);
  }
  return edits;
}

// A character device, links followed: some hosts link the folder elsewhere.
bool IsDevice(const os::HostFs& fs, const std::string& path) {
  auto real = DriverRoot(fs).Resolve(path);
  return fs.Device(real.value_or(path)).ok();
}

}  // namespace

Edits DiscoverExtraClass(const Discovery& discovery, std::string_view device_class) {
  Edits edits;
  if (device_class == kGdsClass) {
    edits = DiscoverGds(discovery);
  } else if (device_class == kMofedClass) {
    std::vector<std::string> nodes = GlobDevices(discovery, "/dev/infiniband", "uverbs*");
    nodes.emplace_back("/dev/infiniband/rdma_cm");
    AddDeviceNodesIfThere(discovery, nodes, edits);
  } else if (device_class == kGdrCopyClass) {
    AddDeviceNodesIfThere(discovery, {"/dev/gdrdrv"}, edits);
  }
  return edits;
}

ImexChannels DiscoverImexChannels(const Discovery& discovery, const std::vector<int>& channels) {
  ImexChannels out;
  for (int channel : channels) {
    std::string path = fmt::format("/dev/nvidia-caps-imex-channels/channel{}", channel);
    // The node may have been given to this process's own container alone.
    if (!IsDevice(discovery.devices(), path) && !IsDevice(discovery.host(), path)) {
      out.missing.push_back(channel);
      continue;
    }
    Device device{.name = fmt::to_string(channel)};
    // No numbers: the runtime takes them from the node when a container starts.
    device.edits.device_nodes.push_back(
        {.path = path, .host_path = JoinPath(discovery.options().dev_root, path)});
    out.devices.push_back(std::move(device));
  }
  return out;
}

}  // namespace ndp::cdi
