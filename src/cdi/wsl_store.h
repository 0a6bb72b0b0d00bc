// Where Windows keeps the display drivers that it shares with a WSL system. One thread; asks the
// Windows driver, which answers at once.
#pragma once

#include <string>
#include <vector>

#include "cdi/driver_root.h"

namespace ndp::cdi {

// As libdxcore tells, of adapters that can compute; without it, every folder of drivers there is.
std::vector<std::string> FindDriverStores(const DriverRoot& root);

}  // namespace ndp::cdi
