// The kubelet stand-in from one start to its stop: what it knows is lost between them, but for the
// checkpoint. Private to the room; see kubelet.h. Thread-safe but for construction and Stop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "os/unix_socket.h"
#include "sim_kubelet/kubelet.h"
#include "sim_kubelet/plugin_client.h"
#include "sim_kubelet/pod_resources.h"

namespace ndp::sim_kubelet {

inline MonoTime Now() { return SystemClock().Now(); }

template <typename Range>
doc::Value ToJsonList(const Range& range) {
  doc::Value list = doc::Value::List();
  for (const auto& item : range) list.Append(item);
  return list;
}

// Takes the fault that the next Register call meets.
struct NextRegister {
  std::optional<std::string> refusal;
  Duration delay{0};
};

class Kubelet::Session {
 public:
  struct Deps {
    const Options& options;
    EventLog& log;
    std::function<NextRegister()> next_register;
    std::function<void(const std::string&)> crash;  // any thread
  };
  explicit Session(Deps deps);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status Listen(os::EventLoop& loop);
  void Stop(bool leave_socket);

  // The handler of a Register call, on one of gRPC's threads.
  Status Register(const std::string& version, const std::string& resource,
                  const std::string& endpoint);

  Result<doc::Value> Admit(const ContainerRequest& request);
  Status ReleasePod(const std::string& pod, bool keep_checkpoint);
  // Who is asked for the resource.
  Result<std::shared_ptr<PluginClient>> ClientOf(const std::string& resource) const;
  Result<std::string> EndpointOf(const std::string& resource) const;
  std::vector<std::string> HealthyOf(const std::string& resource) const;
  Status DropStream(const std::string& resource, const std::string& endpoint);
  doc::Value Describe() const;
  Status WaitFor(const Condition& condition, Duration limit) const;

 private:
  struct Server;
  struct Connection {
    std::string resource;
    std::string endpoint;
    std::shared_ptr<PluginClient> client;
  };

  Result<std::shared_ptr<PluginClient>> Dial(const std::string& endpoint);
  Status Connect(ClientId id, const std::string& resource, const std::string& endpoint);
  void Watch(ClientId id, const Connection& connection);
  void OnList(ClientId id, const Connection& connection, const std::vector<Device>& devices);
  void OnEnd(ClientId id, const Connection& connection, const std::string& how);
  // Under the lock.
  void EndStream(ClientId id, const Connection& connection, const std::string& how);
  Result<doc::Value> AdmitKnown(const ContainerRequest& request);
  // With mutex_ held: writes the checkpoint; reports the node where it has changed.
  void Changed();
  void WriteCheckpoint();

  Deps deps_;
  std::mutex admission_;  // one container at a time

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool stopping_ = false;
  Bookkeeping book_;
  Node node_;
  ClientId next_client_ = 1;
  std::map<ClientId, Connection> connections_;
  std::set<ClientId> dropped_;  // whose end is known before their stream says so
  std::vector<std::thread> watchers_;

  std::unique_ptr<Server> server_;
  std::unique_ptr<os::UnixListener> listener_;
  std::unique_ptr<PodResources> pod_resources_;
  os::EventLoop::Handle grace_check_;
};

}  // namespace ndp::sim_kubelet
