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

constexpr std::string_view kAllocator = "libnvidia-allocator.so";
constexpr std::string_view kVulkanProducer = "libnvidia-vulkan-producer.so";
constexpr std::string_view kGlxServer = "libglxserver_nvidia.so";

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
  const auto add = [&](std::string_view base) {
    for (std::string_view modules : kModules) folders.push_back(JoinPath(base, modules));
  };
  // The usual folders come before those of a second library folder, as upstream.
  for (const std::string& folder : library_folders) {
    folders.push_back(JoinPath(folder, "nvidia/xorg"));
    add(JoinPath(folder, "xorg"));
    for (std::string_view base :
         {"/usr/lib/xorg", "/usr/lib64/xorg", "/usr/X11R6/lib", "/usr/X11R6/lib64"}) {
      add(base);
    }
  }
  return folders;
}

// In NVIDIA's order, each once.
std::vector<std::string> GraphicsLibraries(const Discovery& discovery, LibraryLocator& locator,
                                           const DriverLibraries& driver) {
  std::vector<std::string> patterns(kPlatformLibraries.begin(), kPlatformLibraries.end());
  for (std::string_view name : {kAllocator, kVulkanProducer}) {
    patterns.push_back(fmt::format("{}.{}", name, driver.version));
  }
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    for (std::string& file : locator.Find(pattern)) AppendOnce(files, std::move(file));
  }
  for (const std::string& name :
       {std::string("nvidia_drv.so"), fmt::format("{}.{}", kGlxServer, driver.version)}) {
    for (const std::string& folder : XorgFolders(driver.folders)) {
      std::string path = JoinPath(folder, name);
      if (!discovery.driver().IsFile(path)) continue;
      AppendOnce(files, std::move(path));
      break;
    }
  }
  return files;
}

}  // namespace

Edits DiscoverGraphics(const Discovery& discovery, LibraryLocator& locator,
                       const DriverLibraries& driver) {
  Edits edits;
  std::vector<std::string> links;
  for (const std::string& file : GraphicsLibraries(discovery, locator, driver)) {
    const std::string_view name = BaseName(file);
    const auto is = [&](std::string_view library) {
      return name == fmt::format("{}.{}", library, driver.version);
    };
    if (is(kAllocator)) {
      // GBM's backend under another name. It is mounted with the driver's libraries.
      links.push_back(SymlinkArg("../libnvidia-allocator.so.1",
                                 JoinPath(ParentPath(file), "gbm/nvidia-drm_gbm.so")));
      continue;
    }
    AddMount(discovery, file, edits);
    // Programs open these two without a version.
    for (std::string_view library : {kVulkanProducer, kGlxServer}) {
      if (is(library)) links.push_back(SymlinkArg(name, JoinPath(ParentPath(file), library)));
    }
  }
  AddSymlinkHook(discovery.options(), links, edits);
  AddConfigFiles(discovery, edits);
  AddVulkanFiles(discovery, edits);
  return edits;
}

}  // namespace ndp::cdi
