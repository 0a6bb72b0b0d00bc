// The kubelet's pod resources API, which says what pods hold: served on
// D/pod-resources/kubelet.sock, beside the plugin folder.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "os/event_loop.h"
#include "sim_kubelet/pods.h"

namespace ndp::sim_kubelet {

class PodResources {
 public:
  // Makes the folder where it is missing. `holdings` is called on threads of gRPC's. Loop thread,
  // as is the destructor, which ends all connections.
  static Result<std::unique_ptr<PodResources>> Serve(
      os::EventLoop& loop, const std::filesystem::path& folder,
      std::function<std::vector<Holding>()> holdings);
  virtual ~PodResources() = default;
};

}  // namespace ndp::sim_kubelet
