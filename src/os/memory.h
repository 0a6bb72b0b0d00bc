// What this process keeps resident.
#pragma once

#include <cstddef>

namespace ndp::os {

// Gives back what the start needed and nothing needs now: free heap, and pages of code and
// constants of the program and its libraries. What is still used comes back from the page cache as
// it is touched, by a minor fault for some sixteen pages each; nothing that was written is touched.
// (A breakpoint that a debugger has set meanwhile is lost.) Returns the bytes of code and constants
// that were let go of, resident or not. Any thread; takes well under a millisecond.
std::size_t GiveBackStartMemory();

}  // namespace ndp::os
