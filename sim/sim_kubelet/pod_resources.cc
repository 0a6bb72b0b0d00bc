#include "sim_kubelet/pod_resources.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <pod_resources.grpc.pb.h>

#include <map>
#include <tuple>

#include "os/unix_socket.h"

namespace ndp::sim_kubelet {
namespace {

class Service final : public v1::PodResourcesLister::Service {
 public:
  explicit Service(std::function<std::vector<Holding>()> holdings)
      : holdings_(std::move(holdings)) {}

  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* response) override {
    std::map<std::string, v1::PodResources*> pods;
    std::map<std::tuple<std::string, std::string>, v1::ContainerResources*> containers;
    for (const Holding& held : holdings_()) {
      v1::PodResources*& pod = pods[held.pod];
      if (pod == nullptr) {
        pod = response->add_pod_resources();
        pod->set_name(held.pod);
        pod->set_namespace_("default");
      }
      v1::ContainerResources*& container = containers[{held.pod, held.container}];
      if (container == nullptr) {
        container = pod->add_containers();
        container->set_name(held.container);
      }
      for (const auto& [node, ids] : held.devices) {
        v1::ContainerDevices* devices = container->add_devices();
        devices->set_resource_name(held.resource);
        for (const std::string& id : ids) devices->add_device_ids(id);
        if (node >= 0) devices->mutable_topology()->add_nodes()->set_id(node);
      }
    }
    return grpc::Status::OK;
  }

 private:
  const std::function<std::vector<Holding>()> holdings_;
};

class Server final : public PodResources {
 public:
  explicit Server(std::function<std::vector<Holding>()> holdings) : service_(std::move(holdings)) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Server() override {
    listener_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Status Listen(os::EventLoop& loop, const std::filesystem::path& socket) {
    NDP_TRY(listener_, os::UnixListener::Open(loop, {.path = socket}, [this](os::UniqueFd fd) {
              grpc::AddInsecureChannelFromFd(server_.get(), fd.Release());
            }));
    return {};
  }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<os::UnixListener> listener_;
};

}  // namespace

Result<std::unique_ptr<PodResources>> PodResources::Serve(
    os::EventLoop& loop, const std::filesystem::path& folder,
    std::function<std::vector<Holding>()> holdings) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoError(error.value(), "create " + folder.string());
  auto server = std::make_unique<Server>(std::move(holdings));
  NDP_TRY(server->Listen(loop, folder / "kubelet.sock"));
  return std::unique_ptr<PodResources>(std::move(server));
}

}  // namespace ndp::sim_kubelet
