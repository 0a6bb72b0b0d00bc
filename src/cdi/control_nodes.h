// The nodes every GPU container needs besides its GPU's. One thread.
#pragma once

#include <string>

#include "cdi/discovery.h"
#include "cdi/spec.h"

namespace ndp::cdi {

// Those that are there.
void AddControlNodes(const Discovery& discovery, Edits& edits);
bool IsControlNode(const std::string& path);

}  // namespace ndp::cdi
