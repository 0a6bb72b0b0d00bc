#include "rpc/register_call.h"

#include <grpcpp/client_context.h>

#include "device_plugin.grpc.pb.h"
#include "rpc/grpc_status.h"
#include "rpc/kubelet_channel.h"

namespace ndp::rpc {
namespace {

class Call final : public RegisterCall {
 public:
  Call(Queue& queue, os::UniqueFd kubelet, const Request& request, Done done)
      : done_(std::move(done)),
        stub_(v1beta1::Registration::NewStub(KubeletChannel(std::move(kubelet)))) {
    v1beta1::RegisterRequest message;
    message.set_version("v1beta1");
    message.set_endpoint(request.endpoint);
    message.set_resource_name(request.resource);
    message.mutable_options()->set_get_preferred_allocation_available(true);
    reader_ = stub_->AsyncRegister(&context_, message, queue.get());
    reader_->Finish(&reply_, &status_, this);
  }

  void Cancel() override { context_.TryCancel(); }

  void Proceed(bool /*ok*/) override {
    Done done = std::move(done_);
    const Status result = FromGrpc(status_).Context("register");
    delete this;
    done(result);
  }

 private:
  Done done_;
  const std::unique_ptr<v1beta1::Registration::Stub> stub_;
  grpc::ClientContext context_;
  v1beta1::Empty reply_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1beta1::Empty>> reader_;
};

}  // namespace

RegisterCall* RegisterCall::Start(Queue& queue, os::UniqueFd kubelet, const Request& request,
                                  Done done) {
  return new Call(queue, std::move(kubelet), request, std::move(done));
}

}  // namespace ndp::rpc
