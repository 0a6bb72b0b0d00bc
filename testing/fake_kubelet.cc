#include "testing/fake_kubelet.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "device_plugin.grpc.pb.h"

namespace ndp {
namespace {

constexpr std::chrono::seconds kPatience(30);
constexpr std::chrono::seconds kDialTime(10);  // a kubelet's own

FakeKubelet::List ToList(const v1beta1::ListAndWatchResponse& message) {
  FakeKubelet::List list;
  for (const auto& device : message.devices()) {
    FakeKubelet::Device& out = list[device.id()];
    out.healthy = device.health() == "Healthy";
    for (const auto& node : device.topology().nodes()) {
      out.numa_nodes.push_back(static_cast<int>(node.id()));
    }
  }
  return list;
}

// A connection of its own: gRPC would share one between channels to the same address.
std::shared_ptr<grpc::Channel> Dial(const std::string& path) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

// One ListAndWatch being read on a thread of its own.
class Reader {
 public:
  Reader(const std::shared_ptr<grpc::Channel>& channel,
         std::function<void(const v1beta1::ListAndWatchResponse&)> on_list,
         std::function<void()> on_end)
      : stub_(v1beta1::DevicePlugin::NewStub(channel)),
        stream_(stub_->ListAndWatch(&context_, {})),
        thread_([this, on_list = std::move(on_list), on_end = std::move(on_end)] {
          v1beta1::ListAndWatchResponse message;
          while (stream_->Read(&message)) on_list(message);
          stream_->Finish();
          on_end();
        }) {}
  ~Reader() {
    context_.TryCancel();
    thread_.join();
  }

 private:
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1beta1::ListAndWatchResponse>> stream_;
  std::thread thread_;
};

struct Registration {
  std::string endpoint;
  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<Reader> reader;
  FakeKubelet::List list;
  bool got_list = false;
  bool ended = false;
};

}  // namespace

class FakeKubelet::State final : public v1beta1::Registration::Service {
 public:
  explicit State(std::filesystem::path folder_path) : folder(std::move(folder_path)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_socket()) std::filesystem::remove(entry.path());
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + (folder / "kubelet.sock").string(),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server = builder.BuildAndStart();
  }

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    auto registration = std::make_shared<ndp::Registration>();
    registration->endpoint = request->endpoint();
    {
      std::unique_lock lock(mutex);
      all.push_back(registration);
      changed.notify_all();
      if (!refusal.empty()) return {grpc::StatusCode::UNKNOWN, refusal};
    }
    if (request->version() != "v1beta1") return {grpc::StatusCode::UNKNOWN, "version"};
    registration->channel = Dial((folder / request->endpoint()).string());
    // As kubelets: up to 10 s for the plugin's socket, with tries in between.
    const auto give_up = std::chrono::system_clock::now() + kDialTime;
    while (!registration->channel->WaitForConnected(std::chrono::system_clock::now() +
                                                    std::chrono::milliseconds(50))) {
      if (context->IsCancelled() || std::chrono::system_clock::now() > give_up) {
        return {grpc::StatusCode::UNKNOWN, "failed to dial device plugin"};
      }
    }
    grpc::ClientContext options_context;
    v1beta1::DevicePluginOptions options;
    const grpc::Status asked = v1beta1::DevicePlugin::NewStub(registration->channel)
                                   ->GetDevicePluginOptions(&options_context, {}, &options);
    if (!asked.ok() || !options.get_preferred_allocation_available()) {
      return {grpc::StatusCode::UNKNOWN, "options: " + asked.error_message()};
    }
    {
      std::unique_lock lock(mutex);
      while (hanging && hanging() && !context->IsCancelled()) {
        changed.wait_for(lock, std::chrono::milliseconds(2));
      }
      if (context->IsCancelled()) return grpc::Status::CANCELLED;
    }
    Read(registration);
    return grpc::Status::OK;
  }

  void Read(const std::shared_ptr<ndp::Registration>& registration) {
    // Outlived by what it points to: `all` keeps the registration until the reader is joined.
    auto* raw = registration.get();
    auto reader = std::make_shared<Reader>(
        registration->channel,
        [this, raw](const v1beta1::ListAndWatchResponse& message) {
          std::unique_lock lock(mutex);
          raw->list = ToList(message);
          raw->got_list = true;
          ++lists;
          changed.notify_all();
        },
        [this, raw] {
          std::unique_lock lock(mutex);
          raw->ended = true;
          changed.notify_all();
        });
    std::unique_lock lock(mutex);
    registration->reader = std::move(reader);
    changed.notify_all();
  }

  std::shared_ptr<ndp::Registration> Newest() const {
    std::unique_lock lock(mutex);
    return all.empty() ? nullptr : all.back();
  }

  template <typename Predicate>
  bool Wait(Predicate predicate) const {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, predicate);
  }

  const std::filesystem::path folder;
  std::unique_ptr<grpc::Server> server;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::vector<std::shared_ptr<ndp::Registration>> all;
  std::string refusal;
  std::function<bool()> hanging;
  std::size_t lists = 0;
};

FakeKubelet::FakeKubelet(std::filesystem::path folder)
    : state_(std::make_unique<State>(std::move(folder))) {}

FakeKubelet::~FakeKubelet() {
  // gRPC's listener would unlink the file, which may be a successor's.
  const auto path = state_->folder / "kubelet.sock";
  const auto aside = state_->folder / "kubelet.sock.aside";
  std::error_code ignored;
  std::filesystem::create_hard_link(path, aside, ignored);
  state_->server->Shutdown(std::chrono::system_clock::now());
  for (const auto& registration : state_->all) registration->reader.reset();
  if (!ignored) std::filesystem::rename(aside, path, ignored);
}

void FakeKubelet::RefuseWith(std::string message) {
  std::unique_lock lock(state_->mutex);
  state_->refusal = std::move(message);
}

void FakeKubelet::HangWhile(std::function<bool()> hanging) {
  std::unique_lock lock(state_->mutex);
  state_->hanging = std::move(hanging);
}

std::vector<std::string> FakeKubelet::registrations() const {
  std::unique_lock lock(state_->mutex);
  std::vector<std::string> endpoints;
  for (const auto& registration : state_->all) endpoints.push_back(registration->endpoint);
  return endpoints;
}

bool FakeKubelet::WaitForRegistrations(std::size_t count) const {
  return state_->Wait([&] { return state_->all.size() >= count; });
}

bool FakeKubelet::WaitForList(const std::function<bool(const List&)>& predicate) const {
  return state_->Wait([&] {
    return !state_->all.empty() && state_->all.back()->got_list &&
           predicate(state_->all.back()->list);
  });
}

std::size_t FakeKubelet::lists() const {
  std::unique_lock lock(state_->mutex);
  return state_->lists;
}

bool FakeKubelet::WaitForLists(std::size_t count) const {
  return state_->Wait([&] { return state_->lists >= count; });
}

bool FakeKubelet::WaitForStreamEnd() const {
  return state_->Wait([&] { return !state_->all.empty() && state_->all.back()->ended; });
}

void FakeKubelet::DropStream() {
  const auto newest = state_->Newest();
  std::shared_ptr<Reader> reader;
  {
    std::unique_lock lock(state_->mutex);
    reader = std::move(newest->reader);
  }
  reader.reset();
  newest->channel.reset();
}

FakeKubelet::Answer FakeKubelet::Allocate(const std::vector<std::vector<std::string>>& containers) {
  v1beta1::AllocateRequest request;
  for (const auto& ids : containers) {
    auto& container = *request.add_container_requests();
    for (const auto& id : ids) container.add_devices_ids(id);
  }
  v1beta1::AllocateResponse response;
  grpc::ClientContext context;
  const grpc::Status status = v1beta1::DevicePlugin::NewStub(state_->Newest()->channel)
                                  ->Allocate(&context, request, &response);
  Answer answer{.code = status.error_code(), .message = status.error_message()};
  answer.containers = static_cast<std::size_t>(response.container_responses_size());
  if (answer.containers == 0) return answer;
  const auto& first = response.container_responses(0);
  answer.envs = {first.envs().begin(), first.envs().end()};
  for (const auto& spec : first.devices()) answer.device_specs.push_back(spec.host_path());
  return answer;
}

FakeKubelet::Answer FakeKubelet::Prefer(const std::vector<std::string>& available,
                                        const std::vector<std::string>& must, int size) {
  v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  for (const auto& id : available) container.add_available_deviceids(id);
  for (const auto& id : must) container.add_must_include_deviceids(id);
  container.set_allocation_size(size);
  v1beta1::PreferredAllocationResponse response;
  grpc::ClientContext context;
  const grpc::Status status = v1beta1::DevicePlugin::NewStub(state_->Newest()->channel)
                                  ->GetPreferredAllocation(&context, request, &response);
  Answer answer{.code = status.error_code(), .message = status.error_message()};
  answer.containers = static_cast<std::size_t>(response.container_responses_size());
  if (answer.containers > 0) {
    const auto& ids = response.container_responses(0).deviceids();
    answer.ids = {ids.begin(), ids.end()};
  }
  return answer;
}

bool FakeKubelet::PreStart() {
  grpc::ClientContext context;
  v1beta1::PreStartContainerResponse response;
  return v1beta1::DevicePlugin::NewStub(state_->Newest()->channel)
      ->PreStartContainer(&context, {}, &response)
      .ok();
}

std::shared_ptr<void> FakeKubelet::ExtraStream(std::size_t lists) {
  const auto newest = state_->Newest();
  auto seen = std::make_shared<std::size_t>(0);
  auto reader = std::make_shared<Reader>(
      Dial((state_->folder / newest->endpoint).string()),
      [this, seen](const v1beta1::ListAndWatchResponse&) {
        std::unique_lock lock(state_->mutex);
        ++*seen;
        state_->changed.notify_all();
      },
      [] {});
  if (!state_->Wait([&] { return *seen >= lists; })) return nullptr;
  return reader;
}

}  // namespace ndp
