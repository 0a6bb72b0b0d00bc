// A look at one GPU in a session of its own: by a short-lived process, since all of one process
// share one session with the driver. For a GPU that was let go, so that it can be reset.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "health/examination.h"

namespace ndp::node {

// Runs `ndp examine` of this same program and reads what it prints. Blocks, at most `limit` (the
// process is then killed): only on a worker thread. What goes wrong is the examination's failure.
health::Examination ExamineApart(const std::string& driver_root, const std::string& pci_bus_id,
                                 health::Depth depth, const Clock& clock, Duration limit);

// As ExamineApart, with another program. For tests.
health::Examination ExamineBy(const std::vector<std::string>& command, const Clock& clock,
                              Duration limit);

}  // namespace ndp::node
