// What a generated specification depends on besides the machine.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cdi/names.h"
#include "config/settings.h"

namespace ndp::cdi {

enum class Naming { kUuid, kIndex, kTypeIndex };

// Of the process that generates: where programs and data files are looked for, which kernel runs.
struct Environment {
  std::vector<std::string> path;       // $PATH
  std::vector<std::string> data_dirs;  // $XDG_DATA_DIRS or its default
  std::string kernel_release;          // uname -r; empty where unknown
  bool operator==(const Environment&) const = default;
};
Environment ProcessEnvironment();

struct Options {
  std::string vendor = std::string(kVendor);
  std::string gpu_class = std::string(kGpuClass);
  Naming naming = Naming::kUuid;
  bool all_device = false;  // one more device, with the edits of all
  // The integrated GPU of a Tegra goes by its id in the kubelet, also where NVML has a UUID for it.
  bool tegra_by_id = false;

  // Where the files are on the host, whatever the paths by which this process sees them.
  std::string driver_root = "/";
  std::string dev_root = "/";
  // Each node with its hostPath, also where that equals its path: upstream does so as soon as it
  // sees a root under another path than the host does.
  bool explicit_host_paths = false;

  std::string hook_path = "/usr/bin/nvidia-ctk";  // on the host
  bool disable_all_hooks = false;
  std::set<std::string> disabled_hooks;
  std::set<config::CdiFeature> features;

  bool gds = false;
  bool mofed = false;
  bool gdrcopy = false;
  std::vector<int> imex_channels;
  bool imex_required = false;

  Environment environment;

  bool has(config::CdiFeature feature) const { return features.contains(feature); }
  bool operator==(const Options&) const = default;
};

// For the device plugin.
Options OptionsFrom(const config::Settings& settings, Environment environment);

// Classes that the configuration asks for: what SpecDir::RemoveDisabled keeps. With no CDI strategy
// on, nothing is to be removed: running containers may have come by CDI.
std::set<std::string> EnabledClasses(const Options& options);

}  // namespace ndp::cdi
