// Whether the driver's files were put into our container once by a runtime. Such files go stale for
// ever when the driver is upgraded on the host or the device cgroup is rewritten; only a new
// container helps. Pure.
#pragma once

#include <filesystem>
#include <string_view>

namespace ndp::node {

struct InjectionInputs {
  std::string_view mountinfo;          // the text of /proc/self/mountinfo
  std::filesystem::path library;       // the libnvidia-ml that was loaded last
  std::filesystem::path driver_root;   // as this process sees it
  std::filesystem::path devices_root;  // whose /dev is used
};

// False outside a container, and where both the driver root and /dev are the host's own: those
// show a new driver by themselves.
bool DriverIsInjected(const InjectionInputs& in);

}  // namespace ndp::node
