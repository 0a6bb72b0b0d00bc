// The DevicePlugin service of one resource: its calls and streams as adapters over the resource's
// snapshot. Internal to this room, and the one header with gRPC in it.
//
// All of it belongs to the queue's thread once Serve has been posted there.
#pragma once

#include <grpcpp/server.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "base/clock.h"
#include "device_plugin.grpc.pb.h"
#include "os/unique_fd.h"
#include "plugin/resource_view.h"
#include "rpc/queue.h"
#include "rpc/register_call.h"
#include "rpc/server_event.h"
#include "rpc/server_metrics.h"

namespace ndp::rpc {

class Service {
 public:
  Service(std::shared_ptr<const plugin::ResourceView> view, const Clock& clock,
          ServerMetrics& metrics, std::function<void(ServerEvent)> on_event);
  ~Service();

  // Once, before the queue's thread exists.
  std::unique_ptr<grpc::ServerCompletionQueue> Build();
  grpc::Server& server() { return *server_; }

  void Serve(Queue& queue);
  void Adopt(os::UniqueFd connection, std::string endpoint);
  // `version` differs from the last one where streams are to get the list.
  void Show(std::shared_ptr<const plugin::ResourceView> view, std::uint64_t version);
  // Offers the list as this version once more.
  void Resend(std::uint64_t version);
  // An empty list, and then the end of every stream, also of those still to come.
  void Retire(std::uint64_t version);
  void Register(os::UniqueFd kubelet, const std::string& endpoint);
  void CancelRegister(const std::string& endpoint);
  // No list, no new call; streams end.
  void Stop();

 private:
  using AsyncService = v1beta1::DevicePlugin::AsyncService;
  template <typename Request, typename Response>
  class UnaryCall;
  class ListCall;

  void RequestOptions();
  void RequestPreferred();
  void RequestAllocate();
  void RequestPreStart();
  void RequestList();

  grpc::Status Options(const v1beta1::Empty& request, v1beta1::DevicePluginOptions& response);
  grpc::Status Preferred(const v1beta1::PreferredAllocationRequest& request,
                         v1beta1::PreferredAllocationResponse& response);
  grpc::Status Allocate(const v1beta1::AllocateRequest& request,
                        v1beta1::AllocateResponse& response);
  grpc::Status PreStart(const v1beta1::PreStartContainerRequest& request,
                        v1beta1::PreStartContainerResponse& response);

  void OfferToAll();
  std::string EndpointOf(const std::string& peer) const;

  const Clock& clock_;
  ServerMetrics& metrics_;
  const std::function<void(ServerEvent)> on_event_;

  AsyncService async_;
  std::unique_ptr<grpc::Server> server_;
  Queue* queue_ = nullptr;
  std::mt19937_64 random_;

  std::shared_ptr<const plugin::ResourceView> view_;
  v1beta1::ListAndWatchResponse list_;  // of view_, or empty while retiring
  std::uint64_t version_ = 1;
  bool retiring_ = false;
  bool stopping_ = false;
  std::set<ListCall*> streams_;
  std::map<std::string, RegisterCall*> registers_;
  // By descriptor number, which is what gRPC calls the peer. Numbers are used again.
  std::map<std::string, std::string> endpoints_;
};

}  // namespace ndp::rpc
