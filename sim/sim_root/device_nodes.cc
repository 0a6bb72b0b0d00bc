#include "sim_root/device_nodes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/text.h"
#include "sim_root/files.h"

namespace ndp::sim_root {
namespace {

namespace fs = std::filesystem;
using sim_state::Control;
using sim_state::Gpu;

constexpr unsigned kVideoGid = 44;    // Debian's group video
constexpr unsigned kRenderGid = 109;  // and render, as it often is

void AddGpu(const Gpu& gpu, std::vector<Node>& nodes) {
  nodes.push_back({fmt::format("/dev/nvidia{}", gpu.minor), kNvidiaMajor, gpu.minor});
  // Card 0 is the management controller's.
  nodes.push_back(
      {fmt::format("/dev/dri/card{}", gpu.minor + 1), kDrmMajor, gpu.minor + 1, 0660, kVideoGid});
  nodes.push_back({fmt::format("/dev/dri/renderD{}", gpu.minor + 128), kDrmMajor, gpu.minor + 128,
                   0660, kRenderGid});
  for (const auto& instance : gpu.mig.instances) {
    if (instance.used == 0) continue;
    const unsigned minor = InstanceCapMinor(gpu.minor, instance.id);
    nodes.push_back({fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor), kCapsMajor, minor, 0444});
  }
  for (const auto& device : gpu.mig.devices) {
    if (device.used == 0) continue;
    const unsigned minor = ComputeCapMinor(gpu.minor, device.gi_id, device.ci_id);
    nodes.push_back({fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor), kCapsMajor, minor, 0444});
  }
}

bool HasSwitch(const Control& control) { return control.links[0][0].remote_type == 2; }

// Paths of an earlier list that are gone from the new one.
Status RemoveOld(const fs::path& root, const std::vector<Node>& nodes) {
  const auto list = ReadFile(root / "dev.list");
  if (!list.ok()) return {};
  std::set<std::string_view> keep;
  for (const Node& node : nodes) keep.insert(node.path);
  for (const std::string_view line : Split(*list, '\n')) {
    const std::string_view path = line.substr(0, line.find(' '));
    if (path.starts_with("/dev/") && !keep.contains(path)) {
      NDP_TRY(Remove(root / path.substr(1)));
    }
  }
  return {};
}

Status MakeNode(const fs::path& root, const Node& node) {
  const fs::path path = root / node.path.substr(1);
  const dev_t device = makedev(node.major, node.minor);
  struct stat status{};
  if (lstat(path.c_str(), &status) == 0) {
    if (S_ISCHR(status.st_mode) && status.st_rdev == device) return {};
    unlink(path.c_str());
  }
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (mknod(path.c_str(), S_IFCHR | node.mode, device) != 0) {
    if (errno == EPERM || errno == EACCES) return {};
    return ErrnoError(errno, "make node " + path.string());
  }
  // mknod's mode is cut by the umask.
  if (chmod(path.c_str(), node.mode) != 0 || chown(path.c_str(), 0, node.gid) != 0) {
    if (errno != EPERM) return ErrnoError(errno, "set mode of " + path.string());
  }
  return {};
}

}  // namespace

std::string SysfsPciId(const sim_state::PciAddress& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

// As drivers have been seen to lay them out: 15 GPU instances with 8 compute instances each.
unsigned InstanceCapMinor(unsigned gpu_minor, unsigned gi_id) {
  return 3 + 135 * gpu_minor + 9 * gi_id;
}
unsigned ComputeCapMinor(unsigned gpu_minor, unsigned gi_id, unsigned ci_id) {
  return InstanceCapMinor(gpu_minor, gi_id) + 1 + ci_id;
}

std::vector<Node> NodesOf(const Control& control) {
  std::vector<Node> nodes;
  if (control.driver_present != 0) {
    nodes = {{"/dev/nvidiactl", kNvidiaMajor, 255},
             {"/dev/nvidia-modeset", kNvidiaMajor, 254},
             {"/dev/nvidia-uvm", kUvmMajor, 0},
             {"/dev/nvidia-uvm-tools", kUvmMajor, 1},
             {"/dev/nvidia-caps/nvidia-cap1", kCapsMajor, 1, 0400},
             {"/dev/nvidia-caps/nvidia-cap2", kCapsMajor, 2, 0444}};
    for (unsigned i = 0; i < control.gpu_count; ++i) {
      AddGpu(control.gpus[control.order[i]], nodes);
    }
    if (control.gpu_count > 0 && HasSwitch(control)) {
      nodes.push_back({"/dev/nvidia-nvswitchctl", kNvSwitchMajor, 255});
      for (unsigned i = 0; i < 4; ++i) {
        nodes.push_back({fmt::format("/dev/nvidia-nvswitch{}", i), kNvSwitchMajor, i});
      }
    }
    for (unsigned i = 0; i < control.imex_channels; ++i) {
      nodes.push_back({fmt::format("/dev/nvidia-caps-imex-channels/channel{}", i), kImexMajor, i});
    }
  }
  if (control.platform == sim_state::Platform::kWsl) {
    nodes = {{"/dev/dxg", 10, 125}};
  } else if (control.platform == sim_state::Platform::kTegra) {
    for (const auto& [path, major, minor] :
         {std::tuple("/dev/nvhost-ctrl-gpu", 505U, 1U), std::tuple("/dev/nvmap", 10U, 60U),
          std::tuple("/dev/nvhost-gpu", 505U, 0U)}) {
      nodes.push_back({path, major, minor, 0660, kVideoGid});
    }
  }
  std::ranges::sort(nodes, {}, &Node::path);
  return nodes;
}

std::string FormatDevList(const std::vector<Node>& nodes) {
  std::string text;
  for (const Node& node : nodes) {
    text += fmt::format("{} c {} {} {:04o} {}\n", node.path, node.major, node.minor, node.mode,
                        node.gid);
  }
  return text;
}

Status WriteNodes(const fs::path& root, const std::vector<Node>& nodes) {
  NDP_TRY(RemoveOld(root, nodes));
  // The list first: who is woken by a node in /dev finds both.
  NDP_TRY(WriteFile(root / "dev.list", FormatDevList(nodes)));
  std::error_code error;
  fs::create_directories(root / "dev", error);
  for (const Node& node : nodes) NDP_TRY(MakeNode(root, node));
  return {};
}

}  // namespace ndp::sim_root
