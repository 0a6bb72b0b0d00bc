#include "rpc/service.h"

#include <fmt/format.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "plugin/allocate.h"
#include "plugin/list_stream.h"
#include "rpc/grpc_status.h"
#include "rpc/messages.h"

namespace ndp::rpc {
namespace {

std::vector<std::string_view> Views(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// Two members of one object as tags.
template <typename T>
class MemberTag final : public Tag {
 public:
  MemberTag(T& object, void (T::*member)(bool)) : object_(object), member_(member) {}
  void Proceed(bool ok) override { (object_.*member_)(ok); }

 private:
  T& object_;
  void (T::* const member_)(bool);
};

}  // namespace

// One call from its request to its answer; owns itself.
template <typename Request, typename Response>
class Service::UnaryCall final : public Tag {
 public:
  using Accept = void (AsyncService::*)(grpc::ServerContext*, Request*,
                                        grpc::ServerAsyncResponseWriter<Response>*,
                                        grpc::CompletionQueue*, grpc::ServerCompletionQueue*,
                                        void*);
  using Answer = grpc::Status (Service::*)(const Request&, Response&);
  using Again = void (Service::*)();

  UnaryCall(Service& service, Accept accept, Answer answer, Again again)
      : service_(service), answer_(answer), again_(again) {
    auto* queue = service.queue_->get();
    (service.async_.*accept)(&context_, &request_, &writer_, queue, queue, this);
  }

  void Proceed(bool ok) override {
    // Answered; or the server ends before a call came.
    if (answered_ || !ok) {
      delete this;
      return;
    }
    answered_ = true;
    Response response;
    const grpc::Status status = (service_.*answer_)(request_, response);
    if (status.ok()) {
      writer_.Finish(response, status, this);
    } else {
      writer_.FinishWithError(status, this);
    }
    if (!service_.stopping_) (service_.*again_)();
  }

 private:
  Service& service_;
  const Answer answer_;
  const Again again_;
  bool answered_ = false;
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
};

// One stream: an adapter over plugin::ListStream; owns itself.
class Service::ListCall final {
 public:
  explicit ListCall(Service& service) : service_(service) {
    context_.AsyncNotifyWhenDone(&done_);
    auto* queue = service.queue_->get();
    service.async_.RequestListAndWatch(&context_, &request_, &writer_, queue, queue, &started_);
  }

  void Offer(std::uint64_t version) {
    machine_.Offer(version);
    if (service_.retiring_) machine_.EndAfterOffered();
    Advance();
  }
  void EndNow() {
    machine_.EndNow();
    Advance();
  }

 private:
  void OnStarted(bool ok) {
    if (!ok) {  // the server ends; gRPC does not report such a call as done
      delete this;
      return;
    }
    static std::atomic<std::uint64_t> last_id = 0;
    id_ = ++last_id;
    endpoint_ = service_.EndpointOf(context_.peer());
    service_.streams_.insert(this);
    service_.metrics_.streams.Add(1);
    service_.on_event_(StreamOpened{.endpoint = endpoint_, .stream = id_});
    if (service_.stopping_) return EndNow();
    service_.RequestList();
    Offer(service_.version_);
  }

  void Advance() {
    switch (machine_.Next()) {
      case plugin::ListStream::Step::kWrite:
        writer_.Write(service_.list_, &written_);
        break;
      case plugin::ListStream::Step::kFinish:
        writer_.Finish(grpc::Status::OK, &finished_);
        break;
      case plugin::ListStream::Step::kWait:
        break;
    }
  }

  void OnWritten(bool ok) {
    machine_.OnWritten();
    if (ok) {
      service_.metrics_.lists_sent.Increment();
      service_.on_event_(ListSent{.stream = id_, .version = machine_.version()});
    } else {
      machine_.OnBroken();
    }
    Advance();
  }

  // The call is over for the other side: cancelled, disconnected, or finished by us.
  void OnDone(bool /*ok*/) {
    over_ = true;
    machine_.OnBroken();
    service_.streams_.erase(this);
    service_.metrics_.streams.Add(-1);
    service_.on_event_(StreamEnded{.endpoint = endpoint_, .stream = id_});
    if (service_.retiring_ && service_.streams_.empty()) service_.on_event_(Retired{});
    if (given_back_) {
      delete this;
    } else {
      Advance();
    }
  }

  void OnFinished(bool /*ok*/) {
    given_back_ = true;
    if (over_) delete this;
  }

  Service& service_;
  plugin::ListStream machine_;
  std::uint64_t id_ = 0;
  std::string endpoint_;
  bool over_ = false;
  bool given_back_ = false;
  MemberTag<ListCall> started_{*this, &ListCall::OnStarted};
  MemberTag<ListCall> written_{*this, &ListCall::OnWritten};
  MemberTag<ListCall> finished_{*this, &ListCall::OnFinished};
  MemberTag<ListCall> done_{*this, &ListCall::OnDone};
  grpc::ServerContext context_;
  v1beta1::Empty request_;
  grpc::ServerAsyncWriter<v1beta1::ListAndWatchResponse> writer_{&context_};
};

Service::Service(std::shared_ptr<const plugin::ResourceView> view, const Clock& clock,
                 ServerMetrics& metrics, std::function<void(ServerEvent)> on_event)
    : clock_(clock),
      metrics_(metrics),
      on_event_(std::move(on_event)),
      random_(std::random_device()()),
      view_(std::move(view)) {
  Fill(*view_, list_);
}

Service::~Service() = default;

std::unique_ptr<grpc::ServerCompletionQueue> Service::Build() {
  grpc::ServerBuilder builder;
  // Measured: probes cost wake-ups and some µs a call, and say nothing about a unix socket.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // No timers either: gRPC keeps them in up to 32 shards, by processors, each of which looks around
  // once a second. All do so at once, and that is one wake-up, until a timer moves one of them out
  // of step. So no keepalive pings, and no timer for the deadlines that clients set: all calls but
  // the list are answered at once.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, std::numeric_limits<int>::max());
  builder.AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.RegisterService(&async_);
  auto queue = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  NDP_CHECK(server_ != nullptr);  // it binds nothing, so nothing can fail
  return queue;
}

void Service::Serve(Queue& queue) {
  queue_ = &queue;
  RequestOptions();
  RequestPreferred();
  RequestAllocate();
  RequestPreStart();
  RequestList();
}

void Service::Adopt(os::UniqueFd connection, std::string endpoint) {
  if (stopping_) return;
  endpoints_.insert_or_assign(fmt::format("fd:{}", connection.get()), std::move(endpoint));
  grpc::AddInsecureChannelFromFd(server_.get(), connection.Release());
}

std::string Service::EndpointOf(const std::string& peer) const {
  const auto at = endpoints_.find(peer);
  return at == endpoints_.end() ? std::string() : at->second;
}

void Service::Show(std::shared_ptr<const plugin::ResourceView> view, std::uint64_t version) {
  view_ = std::move(view);
  if (version == version_ || retiring_ || stopping_) return;
  version_ = version;
  list_.Clear();
  Fill(*view_, list_);
  OfferToAll();
}

void Service::Resend(std::uint64_t version) {
  if (retiring_ || stopping_) return;
  version_ = version;
  OfferToAll();
}

void Service::Retire(std::uint64_t version) {
  if (stopping_) return;
  retiring_ = true;
  version_ = version;
  list_.Clear();
  if (streams_.empty()) return on_event_(Retired{});
  OfferToAll();
}

void Service::OfferToAll() {
  for (ListCall* stream : streams_) stream->Offer(version_);
}

void Service::Stop() {
  stopping_ = true;
  for (ListCall* stream : streams_) stream->EndNow();
  for (const auto& [endpoint, call] : registers_) call->Cancel();
}

void Service::Register(os::UniqueFd kubelet, const std::string& endpoint) {
  if (stopping_) return;
  registers_[endpoint] = RegisterCall::Start(
      *queue_, std::move(kubelet), {.endpoint = endpoint, .resource = view_->name()},
      [this, endpoint](Status result) {
        registers_.erase(endpoint);
        on_event_(Registered{.endpoint = endpoint, .result = std::move(result)});
      });
}

void Service::CancelRegister(const std::string& endpoint) {
  const auto at = registers_.find(endpoint);
  if (at != registers_.end()) at->second->Cancel();
}

void Service::RequestOptions() {
  new UnaryCall<v1beta1::Empty, v1beta1::DevicePluginOptions>(
      *this, &AsyncService::RequestGetDevicePluginOptions, &Service::Options,
      &Service::RequestOptions);
}

void Service::RequestPreferred() {
  new UnaryCall<v1beta1::PreferredAllocationRequest, v1beta1::PreferredAllocationResponse>(
      *this, &AsyncService::RequestGetPreferredAllocation, &Service::Preferred,
      &Service::RequestPreferred);
}

void Service::RequestAllocate() {
  new UnaryCall<v1beta1::AllocateRequest, v1beta1::AllocateResponse>(
      *this, &AsyncService::RequestAllocate, &Service::Allocate, &Service::RequestAllocate);
}

void Service::RequestPreStart() {
  new UnaryCall<v1beta1::PreStartContainerRequest, v1beta1::PreStartContainerResponse>(
      *this, &AsyncService::RequestPreStartContainer, &Service::PreStart,
      &Service::RequestPreStart);
}

void Service::RequestList() { new ListCall(*this); }

grpc::Status Service::Options(const v1beta1::Empty& /*request*/,
                              v1beta1::DevicePluginOptions& response) {
  response.set_get_preferred_allocation_available(true);
  return grpc::Status::OK;
}

grpc::Status Service::Preferred(const v1beta1::PreferredAllocationRequest& request,
                                v1beta1::PreferredAllocationResponse& response) {
  for (const auto& container : request.container_requests()) {
    const auto ids = plugin::PreferredAllocation(*view_, Views(container.available_deviceids()),
                                                 Views(container.must_include_deviceids()),
                                                 container.allocation_size());
    if (!ids.ok()) {
      metrics_.preferred_errors.Increment();
      return ToGrpc(ids.error().WithContext("preferred allocation"));
    }
    auto& answer = *response.add_container_responses();
    for (const std::string& id : *ids) answer.add_deviceids(id);
  }
  metrics_.preferred.Increment();
  return grpc::Status::OK;
}

grpc::Status Service::Allocate(const v1beta1::AllocateRequest& request,
                               v1beta1::AllocateResponse& response) {
  const MonoTime start = clock_.Now();
  for (const auto& container : request.container_requests()) {
    const auto answer = plugin::Allocate(*view_, Views(container.devices_ids()), random_);
    if (!answer.ok()) {
      metrics_.allocation_errors.Increment();
      return ToGrpc(answer.error().WithContext("allocate"));
    }
    for (const std::string_view id : answer->unhealthy) {
      log::Warning("allocated a device that is listed Unhealthy",
                   {{"resource", view_->name()}, {"id", std::string(id)}});
    }
    Fill(*answer, *response.add_container_responses());
  }
  metrics_.allocations.Increment();
  metrics_.allocation_seconds.Observe(std::chrono::duration<double>(clock_.Now() - start).count());
  return grpc::Status::OK;
}

grpc::Status Service::PreStart(const v1beta1::PreStartContainerRequest& /*request*/,
                               v1beta1::PreStartContainerResponse& /*response*/) {
  return grpc::Status::OK;
}

}  // namespace ndp::rpc
