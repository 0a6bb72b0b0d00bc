// The least that an asynchronous gRPC server can be: one queue, one thread, one call that does
// nothing. What it costs at rest is what gRPC costs; the benchmark holds the plugin against it.
//
// Usage: bare_server SOCKET
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <memory>
#include <string>

#include "device_plugin.grpc.pb.h"

namespace {

// One outstanding GetDevicePluginOptions. Asked for, answered, and replaced by a fresh one.
class OptionsCall {
 public:
  OptionsCall(v1beta1::DevicePlugin::AsyncService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue) {
    service_.RequestGetDevicePluginOptions(&context_, &request_, &writer_, &queue_, &queue_, this);
  }

  void Proceed(bool ok) {
    if (!ok || answered_) {
      delete this;
      return;
    }
    new OptionsCall(service_, queue_);
    answered_ = true;
    writer_.Finish({}, grpc::Status::OK, this);
  }

 private:
  v1beta1::DevicePlugin::AsyncService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  v1beta1::Empty request_;
  grpc::ServerAsyncResponseWriter<v1beta1::DevicePluginOptions> writer_{&context_};
  bool answered_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SOCKET\n", argv[0]);
    return 2;
  }
  v1beta1::DevicePlugin::AsyncService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("unix:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;

  new OptionsCall(service, *queue);  // owns itself until its answer is out
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<OptionsCall*>(tag)->Proceed(ok);
  return 0;
}
