#include "rpc/pod_resources.h"

#include <grpcpp/client_context.h>

#include <thread>

#include "pod_resources.grpc.pb.h"
#include "rpc/grpc_status.h"
#include "rpc/kubelet_channel.h"

namespace ndp::rpc {
namespace {

// The kubelet's own limit for this API (16 MiB); a node with many pods exceeds gRPC's 4 MiB.
constexpr int kMostBytes = 16 << 20;

Result<plugin::HeldDevices> List(os::UniqueFd kubelet) {
  const auto stub = v1::PodResourcesLister::NewStub(KubeletChannel(std::move(kubelet), kMostBytes));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPodResourcesDeadline);
  v1::ListPodResourcesResponse reply;
  NDP_TRY(FromGrpc(stub->List(&context, {}, &reply)).Context("list pod resources"));
  plugin::HeldDevices held;
  for (const v1::PodResources& pod : reply.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::ContainerDevices& devices : container.devices()) {
        for (const std::string& id : devices.device_ids()) held.Add(devices.resource_name(), id);
      }
    }
  }
  return held;
}

}  // namespace

void ListHeldDevices(os::UniqueFd kubelet,
                     std::move_only_function<void(Result<plugin::HeldDevices>)> done) {
  // Rare and short: no queue of its own waits for it.
  std::thread([kubelet = std::move(kubelet), done = std::move(done)]() mutable {
    done(List(std::move(kubelet)));
  }).detach();
}

}  // namespace ndp::rpc
