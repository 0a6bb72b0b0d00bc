#include "plugin/resource_view.h"

#include <fmt/format.h>

#include <algorithm>

namespace ndp::plugin {
namespace {

// Where containers that get their devices by mounts look for them: the runtime reads the names of
// the files there.
constexpr std::string_view kListMountRoot = "/var/run/nvidia-container-devices";
constexpr std::string_view kListMountSource = "/dev/null";

std::string ImexChannelPath(int channel) {
  return fmt::format("/dev/nvidia-caps-imex-channels/channel{}", channel);
}

ResourceView::DeviceSpec Spec(const std::string& dev_root, const std::string& path) {
  const std::string_view root = dev_root == "/" ? std::string_view() : dev_root;
  return {.container_path = path, .host_path = fmt::format("{}{}", root, path)};
}

resource::DevicePool PoolOf(const std::vector<Unit>& units) {
  std::vector<resource::PoolDevice> devices;
  devices.reserve(units.size());
  for (const Unit& unit : units) {
    devices.push_back(
        {.uuid = unit.uuid, .gpu = unit.gpu, .replicas = unit.replicas, .mig = unit.mig});
  }
  return resource::DevicePool(std::move(devices));
}

}  // namespace

ResourceView::ResourceView(Resource resource)
    : resource_(std::move(resource)), pool_(PoolOf(resource_.units)) {
  for (const ListedDevice& device : resource_.devices) {
    if (!device.healthy) unhealthy_.insert(device.id);
  }
  prepared_.reserve(resource_.units.size());
  for (const Unit& unit : resource_.units) prepared_.push_back(Prepare(unit));
  PrepareCommon();
}

const resource::PairScores& ResourceView::scores() const {
  static const resource::PairScores alike;
  return resource_.scores ? *resource_.scores : alike;
}

ResourceView::PreparedUnit ResourceView::Prepare(const Unit& unit) const {
  const AllocateOptions& options = resource_.options;
  PreparedUnit out{.visible_id = options.ids_by_index ? unit.index : unit.uuid};
  if (options.cdi_annotations || options.cdi_cri) {
    out.cdi_name = fmt::format("{}/gpu={}", options.cdi_vendor, out.visible_id);
  }
  if (options.volume_mounts) {
    out.list_mount = {.container_path = fmt::format("{}/{}", kListMountRoot, out.visible_id),
                      .host_path = std::string(kListMountSource)};
  }
  if (options.pass_device_specs) {
    for (const std::string& node : unit.device_nodes) {
      out.specs.push_back(Spec(options.dev_root, node));
    }
  }
  return out;
}

void ResourceView::PrepareCommon() {
  const AllocateOptions& options = resource_.options;
  if (options.gdrcopy) common_.envs.emplace_back("NVIDIA_GDRCOPY", "enabled");
  if (options.gds) common_.envs.emplace_back("NVIDIA_GDS", "enabled");
  if (options.mofed) common_.envs.emplace_back("NVIDIA_MOFED", "enabled");
  if (!options.mps_root.empty()) {
    common_.mps_pipe = fmt::format("/mps/{}/pipe", resource_.name);
    common_.mps_mounts = {
        {.container_path = common_.mps_pipe,
         .host_path = fmt::format("{}/{}/pipe", options.mps_root, resource_.name)},
        {.container_path = "/dev/shm", .host_path = options.mps_root + "/shm"}};
  }
  if (options.envvar && !options.imex_channels.empty()) {
    common_.envs.emplace_back("NVIDIA_IMEX_CHANNELS",
                              fmt::format("{}", fmt::join(options.imex_channels, ",")));
  }
  for (const int channel : options.imex_channels) {
    common_.imex_mounts.push_back(
        {.container_path = fmt::format("{}/imex/{}", kListMountRoot, channel),
         .host_path = std::string(kListMountSource)});
    common_.imex_specs.push_back(Spec(options.dev_root, ImexChannelPath(channel)));
  }
  for (const std::string& node : options.control_nodes) {
    common_.control_specs.push_back(Spec(options.dev_root, node));
  }
  common_.cdi_names.insert(common_.cdi_names.end(), options.cdi_additional.begin(),
                           options.cdi_additional.end());
}

bool SameList(const ResourceView& a, const ResourceView& b) {
  // The reason stays on the node.
  return std::ranges::equal(
      a.devices(), b.devices(), [](const ListedDevice& x, const ListedDevice& y) {
        return x.id == y.id && x.healthy == y.healthy && x.numa_node == y.numa_node;
      });
}

}  // namespace ndp::plugin
