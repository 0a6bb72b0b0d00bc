// The rules a specification must keep so that a container runtime loads it. Pure, any thread.
#pragma once

#include "base/result.h"
#include "cdi/spec.h"

namespace ndp::cdi {

// kInvalidArgument names the device and the entry that is wrong.
Status Validate(const Spec& spec);

}  // namespace ndp::cdi
