// How many files this process may have open. Any thread; best before any file is opened.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace ndp::os {

// Raises the soft limit as far as the hard one lets it, to what a busy node can need. An error
// where that leaves fewer than `least`: gRPC aborts where it gets no descriptor.
Status RaiseFileLimit(std::uint64_t least);

}  // namespace ndp::os
