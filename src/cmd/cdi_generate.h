// The specification of this machine, asked of its driver here and now.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/build.h"
#include "cdi/options.h"

namespace ndp::cmd {

struct GenerateOptions {
  GenerateOptions() {
    cdi.vendor = "nvidia.com";
    cdi.naming = ndp::cdi::Naming::kIndex;
    cdi.hook_path = "/usr/bin/nvidia-cdi-hook";
    cdi.dev_root.clear();
  }

  ndp::cdi::Options cdi;    // an empty dev_root is the driver root
  std::string driver_root;  // where this process sees it; empty: where the host has it
  std::string host_root = "/";
  bool no_all_device = false;
  std::vector<std::string> disabled_hooks;
};

// May block as long as the driver does. kNotFound where there is no driver.
Result<ndp::cdi::Built> GenerateSpec(GenerateOptions options);

}  // namespace ndp::cmd
