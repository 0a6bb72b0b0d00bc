// Which kind of system this is, and a driver session that fits it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "config/settings.h"
#include "inventory/discover.h"
#include "inventory/inventory.h"
#include "nvml/driver.h"
#include "os/host_fs.h"

namespace ndp::inventory {

struct PlatformEvidence {
  bool dxcore = false;
  bool tegra_files = false;
  bool nvml = false;  // its library loads
  std::vector<std::string> gpu_names;
};

// WSL where libdxcore loads; Tegra where its files are and no NVML, or for an integrated GPU by
// name; NVML where its library loads. `nvml` asks for NVML on a Tegra too, `tegra` for Tegra
// whatever there is.
Platform DetectPlatform(const PlatformEvidence& evidence,
                        config::DiscoveryStrategy strategy = config::DiscoveryStrategy::kAuto);

// /etc/nv_tegra_release, or /sys/devices/soc0/family that begins with "tegra".
bool HasTegraFiles(const os::HostFs& root);
// Windows' library under the driver root, or where the loader finds it. Loads it for a moment.
bool HasDxcore(const os::HostFs& driver_root);

// Opens NVML; on a Tegra or WSL system without it, a session that knows no GPU (nvml::NoDriver).
// Thread-safe.
class PlatformLoader final : public nvml::Loader {
 public:
  // Roots as this process sees them.
  struct Place {
    std::filesystem::path driver_root;
    std::filesystem::path host_root;
    config::DiscoveryStrategy strategy = config::DiscoveryStrategy::kAuto;
  };
  PlatformLoader(nvml::Loader& nvml, Place place) : nvml_(nvml), place_(std::move(place)) {}

  // As nvml::Loader; kNotFound on a system of no kind that can have GPUs.
  Result<std::shared_ptr<nvml::Driver>> Open() override;
  // For the next Open.
  void set_place(Place place);
  // The platform of a scan that was made in the session opened last.
  Platform PlatformOf(const Scan& scan) const;

 private:
  nvml::Loader& nvml_;
  mutable Mutex mutex_;
  Place place_ NDP_GUARDED_BY(mutex_);
  PlatformEvidence evidence_ NDP_GUARDED_BY(mutex_);
};

}  // namespace ndp::inventory
