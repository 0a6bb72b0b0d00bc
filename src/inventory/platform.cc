#include "inventory/platform.h"

#include <algorithm>

#include "base/text.h"
#include "nvml/no_driver.h"
#include "os/dynamic_library.h"

namespace ndp::inventory {

using config::DiscoveryStrategy;

std::string_view PlatformName(Platform platform) {
  switch (platform) {
    case Platform::kNvml:
      return "nvml";
    case Platform::kTegra:
      return "tegra";
    case Platform::kWsl:
      return "wsl";
    case Platform::kUnknown:
      break;
  }
  return "unknown";
}

Platform DetectPlatform(const PlatformEvidence& evidence, DiscoveryStrategy strategy) {
  if (strategy == DiscoveryStrategy::kTegra) return Platform::kTegra;
  if (evidence.dxcore) return Platform::kWsl;
  const bool integrated = std::ranges::any_of(evidence.gpu_names, [](const std::string& name) {
    return name.find("(nvgpu)") != std::string::npos ||
           name.find("NVIDIA Thor") != std::string::npos;
  });
  if (strategy != DiscoveryStrategy::kNvml &&
      ((evidence.tegra_files && !evidence.nvml) || integrated)) {
    return Platform::kTegra;
  }
  return evidence.nvml ? Platform::kNvml : Platform::kUnknown;
}

bool HasTegraFiles(const os::HostFs& root) {
  if (root.Exists("/etc/nv_tegra_release")) return true;
  auto family = root.Read("/sys/devices/soc0/family", 4096);
  return family && ToLower(*family).starts_with("tegra");
}

bool HasDxcore(const os::HostFs& driver_root) {
  return driver_root.Exists("/usr/lib/wsl/lib/libdxcore.so") ||
         os::DynamicLibrary::Open("libdxcore.so").ok();
}

void PlatformLoader::set_place(Place place) {
  const MutexLock lock(mutex_);
  place_ = std::move(place);
}

Result<std::shared_ptr<nvml::Driver>> PlatformLoader::Open() {
  Place place;
  {
    const MutexLock lock(mutex_);
    place = place_;
  }
  const os::HostFs driver_root(place.driver_root);
  auto opened = nvml_.Open();
  const bool absent = !opened.ok() && opened.error().code() == Code::kNotFound;
  const PlatformEvidence evidence{
      .dxcore = HasDxcore(driver_root),
      .tegra_files = HasTegraFiles(driver_root) || HasTegraFiles(os::HostFs(place.host_root)),
      .nvml = !absent,
      .gpu_names = {}};
  {
    const MutexLock lock(mutex_);
    evidence_ = evidence;
  }
  if (opened.ok()) return opened;
  const bool can_do_without = place.strategy == DiscoveryStrategy::kTegra ||
                              (place.strategy == DiscoveryStrategy::kAuto && absent &&
                               DetectPlatform(evidence) != Platform::kUnknown);
  if (can_do_without) return std::shared_ptr<nvml::Driver>(std::make_shared<nvml::NoDriver>());
  if (!absent) return opened;
  return std::move(opened).error().WithContext(
      "this system has neither NVML nor the files of WSL or Tegra");
}

Platform PlatformLoader::PlatformOf(const Scan& scan) const {
  const MutexLock lock(mutex_);
  PlatformEvidence evidence = evidence_;
  for (const auto& gpu : scan.gpus) {
    if (gpu && gpu->name) evidence.gpu_names.push_back(*gpu->name);
  }
  return DetectPlatform(evidence, place_.strategy);
}

}  // namespace ndp::inventory
