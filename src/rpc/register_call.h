// One Register at the kubelet, over a connection that is open already. Lives on a Queue's thread,
// owns itself, and is gone with its connection after it has reported.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "os/unique_fd.h"
#include "rpc/queue.h"

namespace ndp::rpc {

class RegisterCall : public Tag {
 public:
  struct Request {
    std::string endpoint;
    std::string resource;
  };
  // The kubelet dials back for up to 10 s before it answers: a shorter deadline would register
  // twice. Kept by whoever starts the call, with Cancel: see Service::Build for why not by gRPC.
  static constexpr Duration kDeadline = std::chrono::seconds(15);

  using Done = std::move_only_function<void(Status)>;

  // `done` is called on the queue's thread, also after Cancel; the call is gone by then.
  static RegisterCall* Start(Queue& queue, os::UniqueFd kubelet, const Request& request, Done done);
  virtual void Cancel() = 0;
};

}  // namespace ndp::rpc
