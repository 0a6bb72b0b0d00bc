#include "sim_kubelet/session.h"

#include <device_plugin.grpc.pb.h>
#include <fmt/core.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <algorithm>

#include "base/text.h"
#include "os/file.h"
#include "os/host_fs.h"

namespace ndp::sim_kubelet {
namespace {

constexpr std::string_view kVersion = "v1beta1";

// domain/name, as an extended resource must be called.
bool IsExtendedResource(std::string_view text) {
  const auto parts = Split(text, '/');
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return parts.size() == 2 && IsDns1123Subdomain(parts[0]) &&
         !parts[0].ends_with("kubernetes.io") && !parts[1].empty() && parts[1].size() <= 63 &&
         word(parts[1].front()) && word(parts[1].back()) &&
         std::ranges::all_of(parts[1],
                             [&](char c) { return word(c) || c == '-' || c == '_' || c == '.'; });
}

doc::Value ToJson(const Node& node) {
  doc::Value json = doc::Value::Map();
  for (const auto& [resource, quantity] : node) {
    doc::Value& item = json.Set(resource, doc::Value::Map());
    item.Set("capacity", quantity.capacity);
    item.Set("allocatable", quantity.allocatable);
  }
  return json;
}

doc::Value ToJson(const Device& device) {
  doc::Value json = doc::Value::Map();
  json.Set("id", device.id);
  json.Set("health", device.healthy ? "Healthy" : "Unhealthy");
  if (!device.numa.empty()) {
    doc::Value& nodes = json.Set("numa", doc::Value::List());
    for (const std::int64_t node : device.numa) nodes.Append(node);
  }
  return json;
}

}  // namespace

struct Kubelet::Session::Server final : v1beta1::Registration::Service {
  Session& session;
  std::unique_ptr<grpc::Server> server;

  explicit Server(Session& the_session) : session(the_session) {}
  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    const Status status =
        session.Register(request->version(), request->resource_name(), request->endpoint());
    // Go's plain errors arrive as UNKNOWN.
    return status.ok() ? grpc::Status::OK
                       : grpc::Status(grpc::StatusCode::UNKNOWN, status.error().message());
  }
};

Kubelet::Session::Session(Deps deps) : deps_(std::move(deps)), book_(deps_.options.bookkeeping) {
  const auto text =
      os::HostFs().Read(std::filesystem::absolute(deps_.options.folder / kCheckpointFile).string());
  if (text.ok()) {
    if (const auto checkpoint = ParseCheckpoint(*text); checkpoint.ok()) {
      book_.Restore(*checkpoint, Now());
    } else {
      deps_.log.Write("checkpoint-unreadable", {{"error", checkpoint.error().message()}});
    }
  }
  node_ = book_.Report(Now());
}

Kubelet::Session::~Session() { Stop(false); }

Status Kubelet::Session::Listen(os::EventLoop& loop) {
  server_ = std::make_unique<Server>(*this);
  grpc::ServerBuilder builder;
  builder.RegisterService(server_.get());
  server_->server = builder.BuildAndStart();
  const std::filesystem::path path = deps_.options.folder / kKubeletSocket;
  NDP_TRY(listener_, os::UnixListener::Open(loop, {.path = path}, [this](os::UniqueFd connection) {
            grpc::AddInsecureChannelFromFd(server_->server.get(), connection.Release());
          }));
  NDP_TRY(pod_resources_,
          PodResources::Serve(
              loop, std::filesystem::absolute(deps_.options.folder).parent_path() / "pod-resources",
              [this] {
                const std::lock_guard lock(mutex_);
                return book_.holdings();
              }));
  // The real one looks with each node status, every 10 s.
  const Duration period = std::clamp<Duration>(
      deps_.options.bookkeeping.grace / 10, std::chrono::milliseconds(5), std::chrono::seconds(1));
  grace_check_ = loop.Every(period, [this] {
    const std::lock_guard lock(mutex_);
    Changed();
  });
  deps_.log.Write("listening", {{"socket", path.string()}});
  return {};
}

void Kubelet::Session::Stop(bool leave_socket) {
  std::vector<std::thread> watchers;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    changed_.notify_all();
    for (auto& [id, connection] : connections_) connection.client->Close();
  }
  grace_check_.Cancel();
  if (listener_ && leave_socket) listener_->LeaveFile();
  listener_.reset();
  pod_resources_.reset();
  if (server_ && server_->server) server_->server->Shutdown(std::chrono::system_clock::now());
  {
    const std::lock_guard lock(mutex_);  // no Register call is left to add to them
    watchers.swap(watchers_);
  }
  for (std::thread& watcher : watchers) watcher.join();
  const std::lock_guard lock(mutex_);
  connections_.clear();
}

Status Kubelet::Session::Register(const std::string& version, const std::string& resource,
                                  const std::string& endpoint) {
  const MonoTime begin = Now();
  deps_.log.Write("register",
                  {{"resource", resource}, {"endpoint", endpoint}, {"version", version}});
  const auto run = [&]() -> Status {
    const NextRegister next = deps_.next_register();
    if (next.delay > Duration::zero()) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, next.delay, [this] { return stopping_; });
    }
    if (next.refusal) return Error(Code::kUnavailable, *next.refusal);
    if (version != kVersion) {
      return Error(
          Code::kInvalidArgument,
          fmt::format("requested API version \"{}\" is not supported by kubelet. Supported "
                      "version is \"{}\"",
                      version, kVersion));
    }
    if (!IsExtendedResource(resource)) {
      return Error(Code::kInvalidArgument, "the ResourceName \"" + resource + "\" is invalid");
    }
    ClientId id = 0;
    {
      const std::lock_guard lock(mutex_);
      id = next_client_++;
      book_.registrations().Begin(id, resource, endpoint);
    }
    Status status = Connect(id, resource, endpoint);
    if (!status.ok()) {
      const std::lock_guard lock(mutex_);
      book_.registrations().Failed(id);
    }
    return status;
  };
  Status status = run();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(Now() - begin).count();
  if (status.ok()) {
    deps_.log.Write("registered",
                    {{"resource", resource}, {"endpoint", endpoint}, {"took_us", us}});
  } else {
    deps_.log.Write("register-failed", {{"resource", resource},
                                        {"endpoint", endpoint},
                                        {"error", status.error().message()},
                                        {"took_us", us}});
  }
  return status;
}

// As a Go client dials: at once, then after 1 s, 1.6 s more, and so on.
Result<std::shared_ptr<PluginClient>> Kubelet::Session::Dial(const std::string& endpoint) {
  const MonoTime limit = Now() + deps_.options.dial_limit;
  Duration pause = std::chrono::seconds(1);
  while (true) {
    auto client = PluginClient::Connect(deps_.options.folder / endpoint);
    if (client.ok()) return client;
    if (Now() + pause > limit) pause = limit - Now();
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, pause, [this] { return stopping_; })) {
      return Error(Code::kUnavailable, "the kubelet stops");
    }
    if (Now() >= limit) {
      return std::move(client).error().WithContext(
          "failed to dial device plugin: context deadline exceeded");
    }
    pause = pause * 8 / 5;
  }
}

Status Kubelet::Session::Connect(ClientId id, const std::string& resource,
                                 const std::string& endpoint) {
  NDP_TRY(auto client, Dial(endpoint));
  const Connection connection{.resource = resource, .endpoint = endpoint, .client = client};
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return Error(Code::kUnavailable, "the kubelet stops");
    connections_[id] = connection;
  }
  const auto options = client->Options();
  const std::lock_guard lock(mutex_);
  Status status =
      options.ok() ? book_.registrations().Connected(id, *options) : Status(options.error());
  if (status.ok() && stopping_) status = Error(Code::kUnavailable, "the kubelet stops");
  if (!status.ok()) {
    connections_.erase(id);
    return status;
  }
  watchers_.emplace_back([this, id, connection] { Watch(id, connection); });
  return {};
}

void Kubelet::Session::Watch(ClientId id, const Connection& connection) {
  const std::string how = connection.client->Watch(
      [&](const std::vector<Device>& devices) { OnList(id, connection, devices); });
  OnEnd(id, connection, how);
}

void Kubelet::Session::OnList(ClientId id, const Connection& connection,
                              const std::vector<Device>& devices) {
  doc::Value list = doc::Value::List();
  for (const Device& device : devices) list.Append(ToJson(device));
  const std::lock_guard lock(mutex_);
  // Nothing comes of a connection that was closed meanwhile.
  if (stopping_ || !connections_.contains(id)) return;
  deps_.log.Write("list", {{"resource", connection.resource},
                           {"endpoint", connection.endpoint},
                           {"healthy", std::ranges::count_if(devices, &Device::healthy)},
                           {"devices", std::move(list)}});
  book_.Replace(connection.resource, devices);
  WriteCheckpoint();
  Changed();
}

void Kubelet::Session::OnEnd(ClientId id, const Connection& connection, const std::string& how) {
  const std::lock_guard lock(mutex_);
  if (dropped_.erase(id) > 0) return;
  EndStream(id, connection, how);
}

void Kubelet::Session::EndStream(ClientId id, const Connection& connection,
                                 const std::string& how) {
  if (stopping_) return;
  const Registrations::Ended ended = book_.registrations().StreamEnded(id, Now());
  deps_.log.Write("stream-ended", {{"resource", connection.resource},
                                   {"endpoint", connection.endpoint},
                                   {"how", how},
                                   {"devices_unhealthy", ended.devices_unhealthy}});
  if (ended.devices_unhealthy) book_.MarkUnhealthy(connection.resource);
  if (ended.promoted) {
    deps_.log.Write("promoted", {{"resource", connection.resource},
                                 {"endpoint", connections_.at(*ended.promoted).endpoint}});
  }
  if (ended.close) {
    if (const auto closed = connections_.find(*ended.close); closed != connections_.end()) {
      if (*ended.close != id) {
        deps_.log.Write("closed",
                        {{"resource", connection.resource}, {"endpoint", closed->second.endpoint}});
      }
      closed->second.client->Close();
      connections_.erase(closed);
    }
  }
  Changed();
}

void Kubelet::Session::WriteCheckpoint() {
  // An admission may end after the stop; by then the file may be a successor's.
  if (stopping_) return;
  const auto written = os::AtomicWriteFile(deps_.options.folder / kCheckpointFile,
                                           FormatCheckpoint(book_.ToCheckpoint()), {.mode = 0600});
  if (!written.ok()) {
    deps_.log.Write("checkpoint-unwritable", {{"error", written.error().message()}});
  }
}

void Kubelet::Session::Changed() {
  if (stopping_) return;
  std::vector<std::string> forgotten;
  Node node = book_.Report(Now(), &forgotten);
  for (const std::string& resource : forgotten) {
    deps_.log.Write("forgotten", {{"resource", resource}});
  }
  if (!forgotten.empty()) WriteCheckpoint();
  if (node != node_) {
    node_ = std::move(node);
    deps_.log.Write("node", {{"resources", ToJson(node_)}});
  }
  changed_.notify_all();
}

Result<std::shared_ptr<PluginClient>> Kubelet::Session::ClientOf(
    const std::string& resource) const {
  const std::lock_guard lock(mutex_);
  if (const Endpoint* endpoint = book_.registrations().Find(resource)) {
    if (const auto found = connections_.find(endpoint->client); found != connections_.end()) {
      return found->second.client;
    }
  }
  return Error(Code::kNotFound, "nobody serves " + resource);
}

Result<std::string> Kubelet::Session::EndpointOf(const std::string& resource) const {
  const std::lock_guard lock(mutex_);
  if (const Endpoint* endpoint = book_.registrations().Find(resource)) return endpoint->path;
  return Error(Code::kNotFound, "nobody serves " + resource);
}

std::vector<std::string> Kubelet::Session::HealthyOf(const std::string& resource) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> ids;
  if (const auto* devices = book_.DevicesOf(resource)) {
    for (const auto& [id, device] : *devices) {
      if (device.healthy) ids.push_back(id);
    }
  }
  return ids;
}

Status Kubelet::Session::DropStream(const std::string& resource, const std::string& endpoint) {
  const std::lock_guard lock(mutex_);
  const Endpoint* asked = book_.registrations().Find(resource);
  for (const auto& [id, connection] : connections_) {
    if (connection.resource == resource && !dropped_.contains(id) &&
        (endpoint.empty() ? asked != nullptr && asked->client == id
                          : connection.endpoint == endpoint)) {
      connection.client->CancelStream();
      // Before the plugin can register anew: who drops a stream knows it first.
      dropped_.insert(id);
      EndStream(ClientId(id), Connection(connection), "CANCELLED: dropped");
      return {};
    }
  }
  return Error(Code::kNotFound, "no stream of " + resource + " " + endpoint);
}

doc::Value Kubelet::Session::Describe() const {
  const std::lock_guard lock(mutex_);
  doc::Value json = doc::Value::Map();
  doc::Value& resources = json.Set("resources", ToJson(node_));
  for (auto& entry : resources.entries()) {
    doc::Value& endpoints = entry.value.Set("endpoints", doc::Value::List());
    for (const Endpoint& endpoint : book_.registrations().All(entry.key)) {
      if (!endpoint.stopped) endpoints.Append(endpoint.path);
    }
    doc::Value& devices = entry.value.Set("devices", doc::Value::List());
    for (const auto& [id, device] : *book_.DevicesOf(entry.key)) devices.Append(ToJson(device));
  }
  doc::Value& pods = json.Set("pods", doc::Value::List());
  for (const Holding& holding : book_.holdings()) {
    doc::Value pod = doc::Value::Map();
    pod.Set("pod", holding.pod);
    pod.Set("container", holding.container);
    pod.Set("resource", holding.resource);
    pod.Set("devices", ToJsonList(holding.Ids()));
    pods.Append(std::move(pod));
  }
  return json;
}

Status Kubelet::Session::WaitFor(const Condition& condition, Duration limit) const {
  std::unique_lock lock(mutex_);
  Quantity quantity;
  int endpoints = 0;
  const auto holds = [&] {
    const auto found = node_.find(condition.resource);
    quantity = found != node_.end() ? found->second : Quantity{};
    endpoints = static_cast<int>(std::ranges::count_if(
        book_.registrations().All(condition.resource),
        [](const Endpoint& endpoint) { return !endpoint.stopped.has_value(); }));
    return condition.capacity.value_or(quantity.capacity) == quantity.capacity &&
           condition.allocatable.value_or(quantity.allocatable) == quantity.allocatable &&
           condition.endpoints.value_or(endpoints) == endpoints;
  };
  if (changed_.wait_for(lock, limit, [&] { return stopping_ || holds(); }) && !stopping_) return {};
  return Error(Code::kDeadlineExceeded,
               fmt::format("{}: capacity {}, allocatable {}, endpoints {}", condition.resource,
                           quantity.capacity, quantity.allocatable, endpoints));
}

}  // namespace ndp::sim_kubelet
