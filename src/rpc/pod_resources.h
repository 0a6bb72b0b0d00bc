// Asks the kubelet's pod resources API which devices pods hold.
#pragma once

#include <functional>

#include "base/clock.h"
#include "base/result.h"
#include "os/unique_fd.h"
#include "plugin/held_devices.h"

namespace ndp::rpc {

inline constexpr Duration kPodResourcesDeadline = std::chrono::seconds(10);

// One List over a connection to the API's socket. Any thread; `done` is called once, on a thread of
// the query's own, which ends with it. Asking also makes the kubelet let go of what ended pods held
// (it does so otherwise only when a pod asks for a device).
void ListHeldDevices(os::UniqueFd kubelet,
                     std::move_only_function<void(Result<plugin::HeldDevices>)> done);

}  // namespace ndp::rpc
