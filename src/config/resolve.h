// What follows from settings together: values derived from others, and contradictions. For Load.
#pragma once

#include "base/result.h"
#include "config/load.h"

namespace ndp::config {

Status Resolve(Loaded& loaded);

}  // namespace ndp::config
