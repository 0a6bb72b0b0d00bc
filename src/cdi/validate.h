// The rules a specification must keep so that a container runtime loads it. Pure, any thread.
#pragma once

#include "base/result.h"
#include "cdi/spec.h"

namespace ndp::cdi {

// kInvalidArgument names the device and the entry that is wrong, and its line where it was read.
Status Validate(const Spec& spec);

}  // namespace ndp::cdi
