// The driver's files that are no libraries: sockets of its daemons, firmware, programs. All
// optional. One thread.
#pragma once

#include <string_view>

#include "cdi/discovery.h"
#include "cdi/spec.h"

namespace ndp::cdi {

void AddSockets(const Discovery& discovery, Edits& edits);
void AddFirmware(Discovery& discovery, std::string_view driver_version, Edits& edits);
void AddPrograms(const Discovery& discovery, Edits& edits);

}  // namespace ndp::cdi
