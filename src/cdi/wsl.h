// The specification of a Windows Subsystem for Linux: one device, "all", and the driver store that
// Windows shares. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/discovery.h"
#include "cdi/spec.h"

namespace ndp::cdi {

struct WslSpec {
  Device all;
  Edits common;
};

// `stores`: folders that may be the NVIDIA driver's store; the first with libcuda.so.1.1 is it.
// kNotFound where none is, or without /dev/dxg.
Result<WslSpec> DiscoverWsl(Discovery& discovery, const std::vector<std::string>& stores);

}  // namespace ndp::cdi
