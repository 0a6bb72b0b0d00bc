#include "rpc/plugin_server.h"

#include <grpc/support/log.h>

#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "rpc/service.h"

namespace ndp::rpc {
namespace {

// gRPC reports what clients do wrong (garbage on a socket) as errors of its own: nothing that an
// operator needs, so only at debug level.
void LogForGrpc(gpr_log_func_args* args) { log::Debug("grpc", {{"message", args->message}}); }

// Once per process: gRPC is set up for good, so that a server that comes later costs nothing.
void SetUpGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(LogForGrpc);
    grpc_init();
  });
}

std::unique_ptr<Service> MakeService(std::shared_ptr<const plugin::ResourceView> view,
                                     const Clock& clock, ServerMetrics& metrics,
                                     std::function<void(ServerEvent)> on_event) {
  SetUpGrpc();
  return std::make_unique<Service>(std::move(view), clock, metrics, std::move(on_event));
}

}  // namespace

std::jthread WarmUp() { return std::jthread(SetUpGrpc); }

PluginServer::PluginServer(std::shared_ptr<const plugin::ResourceView> view, const Clock& clock,
                           ServerMetrics& metrics, std::function<void(ServerEvent)> on_event)
    : view_(std::move(view)),
      service_(MakeService(view_, clock, metrics, std::move(on_event))),
      queue_(std::make_unique<Queue>(service_->Build())) {
  queue_->Post([service = service_.get(), queue = queue_.get()] { service->Serve(*queue); });
}

PluginServer::~PluginServer() {
  std::promise<void> stopped;
  queue_->Post([this, &stopped] {
    service_->Stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
  // No operation is begun any more; what is under way is cancelled and given back.
  service_->server().Shutdown(std::chrono::system_clock::now());
  queue_.reset();
}

void PluginServer::Adopt(os::UniqueFd connection, std::string endpoint) {
  queue_->Post([service = service_.get(), connection = std::move(connection),
                endpoint = std::move(endpoint)]() mutable {
    service->Adopt(std::move(connection), std::move(endpoint));
  });
}

void PluginServer::Register(os::UniqueFd kubelet, std::string endpoint) {
  queue_->Post([service = service_.get(), kubelet = std::move(kubelet),
                endpoint = std::move(endpoint)]() mutable {
    service->Register(std::move(kubelet), endpoint);
  });
}

void PluginServer::CancelRegister(std::string endpoint) {
  queue_->Post([service = service_.get(), endpoint = std::move(endpoint)] {
    service->CancelRegister(endpoint);
  });
}

std::uint64_t PluginServer::Show(std::shared_ptr<const plugin::ResourceView> view) {
  if (!SameList(*view_, *view)) ++version_;
  view_ = view;
  queue_->Post([service = service_.get(), view = std::move(view), version = version_]() mutable {
    service->Show(std::move(view), version);
  });
  return version_;
}

std::uint64_t PluginServer::Resend() {
  ++version_;
  queue_->Post([service = service_.get(), version = version_] { service->Resend(version); });
  return version_;
}

void PluginServer::Retire() {
  ++version_;
  queue_->Post([service = service_.get(), version = version_] { service->Retire(version); });
}

void PluginServer::Ping(std::move_only_function<void()> pong) { queue_->Post(std::move(pong)); }

}  // namespace ndp::rpc
