#include "sim_kubelet/plugin_client.h"

#include <device_plugin.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <set>

#include "base/mutex.h"
#include "os/unix_socket.h"

namespace ndp::sim_kubelet {
namespace {

std::string Describe(const grpc::Status& status) {
  static constexpr const char* kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT", "DEADLINE",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "EXHAUSTED",        "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",         "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto code = static_cast<std::size_t>(status.error_code());
  std::string text = code < std::size(kNames) ? kNames[code] : std::to_string(code);
  if (!status.error_message().empty()) text += ": " + status.error_message();
  return text;
}

doc::Value ToJson(const v1beta1::ContainerAllocateResponse& answer) {
  doc::Value envs = doc::Value::Map();
  // Sorted: a protobuf map has no order.
  for (const auto& [key, value] :
       std::map<std::string, std::string>(answer.envs().begin(), answer.envs().end())) {
    envs.Set(key, value);
  }
  doc::Value annotations = doc::Value::Map();
  for (const auto& [key, value] : std::map<std::string, std::string>(answer.annotations().begin(),
                                                                     answer.annotations().end())) {
    annotations.Set(key, value);
  }
  doc::Value mounts = doc::Value::List();
  for (const auto& mount : answer.mounts()) {
    doc::Value item = doc::Value::Map();
    item.Set("containerPath", mount.container_path());
    item.Set("hostPath", mount.host_path());
    item.Set("readOnly", mount.read_only());
    mounts.Append(std::move(item));
  }
  doc::Value devices = doc::Value::List();
  for (const auto& device : answer.devices()) {
    doc::Value item = doc::Value::Map();
    item.Set("containerPath", device.container_path());
    item.Set("hostPath", device.host_path());
    item.Set("permissions", device.permissions());
    devices.Append(std::move(item));
  }
  doc::Value cdi = doc::Value::List();
  for (const auto& device : answer.cdi_devices()) cdi.Append(device.name());
  doc::Value json = doc::Value::Map();
  json.Set("envs", std::move(envs));
  json.Set("mounts", std::move(mounts));
  json.Set("devices", std::move(devices));
  json.Set("annotations", std::move(annotations));
  json.Set("cdiDevices", std::move(cdi));
  return json;
}

}  // namespace

struct PluginClient::State {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  Mutex mutex;
  bool closed NDP_GUARDED_BY(mutex) = false;
  grpc::ClientContext* stream NDP_GUARDED_BY(mutex) = nullptr;
  std::set<grpc::ClientContext*> calls NDP_GUARDED_BY(mutex);
};

PluginClient::PluginClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
PluginClient::~PluginClient() = default;

Result<std::shared_ptr<PluginClient>> PluginClient::Connect(const std::filesystem::path& socket) {
  NDP_TRY(os::UniqueFd fd, os::ConnectUnix(socket));
  auto state = std::make_unique<State>();
  state->channel = grpc::CreateInsecureChannelFromFd("plugin", fd.Release());
  state->stub = v1beta1::DevicePlugin::NewStub(state->channel);
  return std::shared_ptr<PluginClient>(new PluginClient(std::move(state)));
}

template <typename Call>
Status PluginClient::Run(const char* name, Duration deadline, Call call) {
  grpc::ClientContext context;
  if (deadline != Duration::max()) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<std::chrono::milliseconds>(deadline));
  }
  {
    MutexLock lock(state_->mutex);
    // fmt::format: GCC 12 inlines `string + text` here and warns of bounds that it has wrong.
    if (state_->closed) return Error(Code::kUnavailable, fmt::format("{}: not connected", name));
    state_->calls.insert(&context);
  }
  const grpc::Status status = call(&context);
  {
    MutexLock lock(state_->mutex);
    state_->calls.erase(&context);
  }
  if (status.ok()) return {};
  return Error(Code::kUnavailable, fmt::format("{}: {}", name, Describe(status)));
}

Result<PluginOptions> PluginClient::Options() {
  v1beta1::DevicePluginOptions answer;
  NDP_TRY(
      Run("GetDevicePluginOptions", std::chrono::seconds(10), [&](grpc::ClientContext* context) {
        return state_->stub->GetDevicePluginOptions(context, {}, &answer);
      }));
  return PluginOptions{.pre_start = answer.pre_start_required(),
                       .preferred = answer.get_preferred_allocation_available()};
}

std::string PluginClient::Watch(const std::function<void(std::vector<Device>)>& on_list) {
  grpc::ClientContext context;
  {
    MutexLock lock(state_->mutex);
    if (state_->closed) return "CANCELLED";
    state_->stream = &context;
  }
  const auto reader = state_->stub->ListAndWatch(&context, {});
  v1beta1::ListAndWatchResponse list;
  while (reader->Read(&list)) {
    std::vector<Device> devices;
    for (const auto& device : list.devices()) {
      Device& out = devices.emplace_back();
      out.id = device.id();
      out.healthy = device.health() == "Healthy";
      for (const auto& node : device.topology().nodes()) out.numa.push_back(node.id());
    }
    on_list(std::move(devices));
  }
  const grpc::Status status = reader->Finish();
  MutexLock lock(state_->mutex);
  state_->stream = nullptr;
  return Describe(status);
}

Result<std::vector<std::string>> PluginClient::Preferred(const Choice::Question& question,
                                                         int size) {
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : question.available) container->add_available_deviceids(id);
  for (const std::string& id : question.must_include) container->add_must_include_deviceids(id);
  container->set_allocation_size(size);
  v1beta1::PreferredAllocationResponse answer;
  NDP_TRY(Run("GetPreferredAllocation", Duration::max(), [&](grpc::ClientContext* context) {
    return state_->stub->GetPreferredAllocation(context, request, &answer);
  }));
  std::vector<std::string> ids;
  if (answer.container_responses_size() > 0) {
    const auto& preferred = answer.container_responses(0).deviceids();
    ids.assign(preferred.begin(), preferred.end());
  }
  return ids;
}

Result<AllocateAnswer> PluginClient::Allocate(const std::vector<std::string>& ids) {
  v1beta1::AllocateRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_devices_ids(id);
  v1beta1::AllocateResponse answer;
  NDP_TRY(Run("Allocate", Duration::max(), [&](grpc::ClientContext* context) {
    return state_->stub->Allocate(context, request, &answer);
  }));
  if (answer.container_responses_size() == 0) {
    return Error(Code::kInternal, "no containers return in allocation response");
  }
  return AllocateAnswer{.json = ToJson(answer.container_responses(0)),
                        .serialised = answer.container_responses(0).SerializeAsString()};
}

Status PluginClient::PreStart(const std::vector<std::string>& ids) {
  v1beta1::PreStartContainerRequest request;
  for (const std::string& id : ids) request.add_devices_ids(id);
  v1beta1::PreStartContainerResponse answer;
  return Run("PreStartContainer", std::chrono::seconds(30), [&](grpc::ClientContext* context) {
    return state_->stub->PreStartContainer(context, request, &answer);
  });
}

void PluginClient::CancelStream() {
  MutexLock lock(state_->mutex);
  if (state_->stream != nullptr) state_->stream->TryCancel();
}

void PluginClient::Close() {
  MutexLock lock(state_->mutex);
  state_->closed = true;
  if (state_->stream != nullptr) state_->stream->TryCancel();
  for (grpc::ClientContext* call : state_->calls) call->TryCancel();
}

}  // namespace ndp::sim_kubelet
