#include "config/resolve.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/path.h"

namespace ndp::config {
namespace {

constexpr std::string_view kDefaultSocketDir = "/var/lib/kubelet/device-plugins";

bool IsDefault(const Loaded& loaded, std::string_view id) {
  const auto at = loaded.origins.find(id);
  return at == loaded.origins.end() || at->second.source == Source::kDefault;
}

std::string OriginText(const Loaded& loaded, std::string_view id) {
  const auto at = loaded.origins.find(id);
  return at == loaded.origins.end() ? std::string(id) : at->second.Text();
}

// Paths that this process opens may be relative to where it was started. (Those of the host are
// refused by their options: there is nothing on the host that they could be relative to.)
void MakePathsAbsolute(Settings& s) {
  for (std::string* path :
       {&s.common.config_file, &s.common.driver_root_ctr_path, &s.common.host_root,
        &s.plugin.kubelet_socket, &s.cdi.spec_dir, &s.health.state_file, &s.health.fences_file,
        &s.gfd.output_file, &s.gfd.machine_type_file, &s.manager.config_file_srcdir,
        &s.manager.config_file_dst, &s.cluster.kubeconfig}) {
    *path = AbsoluteFrom(*path);
  }
}

void Derive(Loaded& loaded) {
  Settings& s = loaded.settings;
  MakePathsAbsolute(s);
  if (s.common.driver_root.empty()) s.common.driver_root = "/";
  const bool own_dev = !s.common.dev_root.empty() && !IsDefault(loaded, "dev-root");
  s.common.dev_root = own_dev ? DevRootOf(s.common.dev_root) : CleanPath(s.common.driver_root);
  if (s.common.driver_root_ctr_path.empty()) s.common.driver_root_ctr_path = "/";
  if (s.common.host_root.empty()) s.common.host_root = "/";
  if (s.cdi.hook_path.empty()) s.cdi.hook_path = Cdi().hook_path;

  const std::filesystem::path socket = s.plugin.kubelet_socket;
  s.plugin.socket_dir = socket.empty()             ? std::string(kDefaultSocketDir)
                        : socket.has_parent_path() ? socket.parent_path().string()
                                                   : ".";
  if (IsDefault(loaded, "health.stateFile")) {
    s.health.state_file = s.plugin.socket_dir + "/.ndp-health";
  }
  // The variable turns polls off as well, unless the file says otherwise.
  if (s.health.xids.disabled.all && IsDefault(loaded, "health.polling.enabled")) {
    s.health.polling.enabled = false;
    loaded.origins["health.polling.enabled"] = loaded.origins["DP_DISABLE_HEALTHCHECKS"];
  }
}

Error Refuse(const Loaded& loaded, std::string_view id, std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("{}: {}", OriginText(loaded, id), what)};
}

Status CheckPlugin(const Loaded& loaded) {
  const Settings& s = loaded.settings;
  if (s.sharing.strategy == SharingStrategy::kMps) {
    if (s.common.mig_strategy == MigStrategy::kMixed) {
      return Refuse(loaded, "mig-strategy",
                    "mixed cannot be had together with sharing.mps: want none or single, or "
                    "sharing.timeSlicing");
    }
    if (s.plugin.mps_root.empty()) {
      return Refuse(loaded, "sharing",
                    "sharing.mps needs --mps-root (MPS_ROOT, flags.mpsRoot): want the host folder "
                    "of the MPS daemons, such as /run/nvidia/mps");
    }
  }
  if (s.common.device_discovery_strategy == DiscoveryStrategy::kVfio) {
    return Refuse(loaded, "device-discovery-strategy",
                  "vfio is for feature-discovery only: want auto, nvml or tegra");
  }
  return {};
}

Status CheckManager(const Loaded& loaded) {
  const Settings& s = loaded.settings;
  const struct {
    const std::string& value;
    std::string_view flag;
    std::string_view env;
  } required[] = {{s.cluster.node_name, "node-name", "NODE_NAME"},
                  {s.manager.config_file_srcdir, "config-file-srcdir", "CONFIG_FILE_SRCDIR"},
                  {s.manager.config_file_dst, "config-file-dst", "CONFIG_FILE_DST"}};
  for (const auto& [value, flag, env] : required) {
    if (!value.empty()) continue;
    return Error(Code::kInvalidArgument,
                 fmt::format("--{} is required: want it, or the variable {}", flag, env));
  }
  return {};
}

}  // namespace

std::string DevRootOf(std::string_view path) {
  std::string root = CleanPath(path);
  if (root.ends_with("/dev")) root.resize(root.size() - 4);
  return root.empty() ? "/" : root;
}

Status Resolve(Loaded& loaded) {
  Derive(loaded);
  if (loaded.program == Program::kDevicePlugin) return CheckPlugin(loaded);
  if (loaded.program == Program::kConfigManager) return CheckManager(loaded);
  if (loaded.program == Program::kMpsControlDaemon &&
      loaded.settings.common.device_discovery_strategy == DiscoveryStrategy::kVfio) {
    return Refuse(loaded, "device-discovery-strategy",
                  "vfio is for feature-discovery only: want auto, nvml or tegra");
  }
  return {};
}

}  // namespace ndp::config
