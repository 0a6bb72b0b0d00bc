#include "rpc/kubelet_channel.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/support/channel_arguments.h>

#include <limits>

namespace ndp::rpc {

std::shared_ptr<grpc::Channel> KubeletChannel(os::UniqueFd kubelet, int most_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, std::numeric_limits<int>::max());
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetMaxReceiveMessageSize(most_bytes);
  return grpc::CreateCustomInsecureChannelFromFd("kubelet", kubelet.Release(), arguments);
}

}  // namespace ndp::rpc
