// /proc/driver/nvidia-caps/mig-minors: which capability node opens which MIG instance.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inventory/inventory.h"
#include "os/host_fs.h"

namespace ndp::inventory {

// Lines "gpu<G>/gi<I>/access 3", "gpu<G>/gi<I>/ci<C>/access 4", "config 1", "monitor 2". A line of
// another form is left out and described in `bad_lines`, if given ("line 3: …").
MigMinors ParseMigMinors(std::string_view text, std::vector<std::string>* bad_lines = nullptr);

// Empty where the file is absent: the driver is not MIG capable.
Result<MigMinors> ReadMigMinors(const os::HostFs& host);

}  // namespace ndp::inventory
