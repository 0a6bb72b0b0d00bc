// What OpenGL, Vulkan, EGL and X need besides the driver's versioned libraries. One thread.
#pragma once

#include "cdi/discovery.h"
#include "cdi/libraries.h"
#include "cdi/spec.h"

namespace ndp::cdi {

// Everything here is optional: what the node lacks is left out.
Edits DiscoverGraphics(const Discovery& discovery, LibraryLocator& locator,
                       const DriverLibraries& driver);

}  // namespace ndp::cdi
