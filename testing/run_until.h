// Turns an event loop until something is true: how a test waits without sleeping.
//
//   ASSERT_TRUE(RunUntil(*loop, [&] { return accepted; }));
#pragma once

#include <functional>

#include "os/event_loop.h"

namespace ndp {

// False where it is still not true after `limit`. The condition is looked at after each round of
// the loop; only what the loop does can wake it.
inline bool RunUntil(os::EventLoop& loop, const std::function<bool()>& condition,
                     Duration limit = std::chrono::seconds(10)) {
  bool expired = false;
  const auto timer = loop.After(limit, [&expired] { expired = true; });
  while (!condition()) {
    if (expired) return false;
    loop.RunOnce();
  }
  return true;
}

}  // namespace ndp
