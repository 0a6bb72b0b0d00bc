#include "cdi/graphics.h"

#include <fmt/format.h>

#include <array>

#include "cdi/hooks.h"
#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

// Versions of their own, hence the pattern.
constexpr std::array<std::string_view, 3> kPlatformLibraries = {
    "libnvidia-egl-gbm.so.*.*", "libnvidia-egl-wayland.so.*.*", "libnvidia-egl-wayland2.so.*.*"};

constexpr std::array<std::string_view, 8> kConfigFiles = {
    "glvnd/egl_vendor.d/10_nvidia.json",
    "egl/egl_external_platform.d/15_nvidia_gbm.json",
    "egl/egl_external_platform.d/10_nvidia_wayland.json",
    "egl/egl_external_platform.d/09_nvidia_wayland2.json",
    "nvidia/nvoptix.bin",
    "X11/xorg.conf.d/10-nvidia.conf",
    "X11/xorg.conf.d/nvidia-drm-outputclass.conf",
    "OpenCL/vendors/nvidia.icd"};

constexpr std::array<std::string_view, 4> kVulkanFiles = {
    "vulkan/icd.d/nvidia_icd.json", "vulkan/icd.d/nvidia_layers.json",
    "vulkan/implicit_layer.d/nvidia_layers.json",
#if defined(__aarch64__)
    "vulkan/icd.d/nvidia_icd.aarch64.json"
#else
    "vulkan/icd.d/nvidia_icd.x86_64.json"
#endif
};

std::vector<std::string> ConfigFolders(const Discovery& discovery) {
  std::vector<std::string> folders = {"/etc"};
  const auto& data = discovery.options().environment.data_dirs;
  folders.insert(folders.end(), data.begin(), data.end());
  return folders;
}

void AddConfigFiles(const Discovery& discovery, Edits& edits) {
  for (std::string_view name : kConfigFiles) {
    for (const std::string& folder : ConfigFolders(discovery)) {
      std::string path = JoinPath(folder, name);
      if (discovery.driver().IsFile(path)) AddMount(discovery, path, edits);
    }
  }
}

// Always below /etc in the container, wherever the host has them: the first hit alone.
void AddVulkanFiles(const Discovery& discovery, Edits& edits) {
  std::vector<std::string> folders = ConfigFolders(discovery);
  folders.emplace_back("/");  // GKE installs the driver so
  for (std::string_view name : kVulkanFiles) {
    for (const std::string& folder : folders) {
      std::string path = JoinPath(folder, name);
      if (!discovery.driver().IsFile(path)) continue;
      AddMount(discovery, path, edits, JoinPath("/etc", name));
      break;
    }
  }
}

std::vector<std::string> XorgFolders(const std::vector<std::string>& library_folders) {
  constexpr std::array<std::string_view, 4> kModules = {"modules/drivers", "modules/extensions",
                                                        "modules/updates/drivers",
                                                        "modules/updates/extensions"};
  std::vector<std::string> folders;
  for (const std::string& folder : library_folders) {
    folders.push_back(JoinPath(folder, "nvidia/xorg"));
    for (std::string_view modules : kModules) {
      folders.push_back(JoinPath(JoinPath(folder, "xorg"), modules));
    }
  }
  for (std::string_view base :
       {"/usr/lib/xorg", "/usr/lib64/xorg", "/usr/X11R6/lib", "/usr/X11R6/lib64"}) {
    for (std::string_view modules : kModules) folders.push_back(JoinPath(base, modules));
  }
  return folders;
}

}  // namespace

Edits DiscoverGraphics(const Discovery& discovery, LibraryLocator& locator,
                       const DriverLibraries& driver) {
  const Options& options = discovery.options();
  Edits edits;
  std::vector<std::string> links;
  for (std::string_view pattern : kPlatformLibraries) {
    for (const std::string& file : locator.Find(pattern)) AddMount(discovery, file, edits);
  }
  // The allocator is GBM's backend under another name. It is mounted with the driver's libraries.
  std::string allocator = fmt::format("libnvidia-allocator.so.{}", driver.version);
  for (const std::string& file : locator.Find(allocator)) {
    if (BaseName(file) != allocator) continue;
    links.push_back(SymlinkArg("../libnvidia-allocator.so.1",
                               JoinPath(ParentPath(file), "gbm/nvidia-drm_gbm.so")));
  }
  // Programs open these two without a version.
  auto add = [&](const std::string& file, std::string_view name) {
    AddMount(discovery, file, edits);
    if (BaseName(file) == fmt::format("{}.{}", name, driver.version)) {
      links.push_back(SymlinkArg(BaseName(file), JoinPath(ParentPath(file), name)));
    }
  };
  for (const std::string& file :
       locator.Find(fmt::format("libnvidia-vulkan-producer.so.{}", driver.version))) {
    add(file, "libnvidia-vulkan-producer.so");
  }
  for (const std::string& name :
       {std::string("nvidia_drv.so"), fmt::format("libglxserver_nvidia.so.{}", driver.version)}) {
    for (const std::string& folder : XorgFolders(driver.folders)) {
      std::string path = JoinPath(folder, name);
      if (!discovery.driver().IsFile(path)) continue;
      add(path, "libglxserver_nvidia.so");
      break;
    }
  }
  AddSymlinkHook(options, links, edits);
  AddConfigFiles(discovery, edits);
  AddVulkanFiles(discovery, edits);
  return edits;
}

}  // namespace ndp::cdi
