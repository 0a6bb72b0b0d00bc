// A gRPC channel over a connection to the kubelet that is open already. Any thread.
#pragma once

#include <grpcpp/channel.h>

#include <memory>

#include "os/unique_fd.h"

namespace ndp::rpc {

// Without keepalive pings and their timer: see Service::Build for what timers cost.
std::shared_ptr<grpc::Channel> KubeletChannel(os::UniqueFd kubelet, int most_bytes = 4 << 20);

}  // namespace ndp::rpc
