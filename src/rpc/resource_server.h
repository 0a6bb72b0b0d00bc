// One resource at the kubelet: its sockets, its registration, its gRPC server. Owned by the node,
// loop thread only.
//
//   auto server = ResourceServer::Start(view, {.socket_dir = …, .kubelet_socket = …}, deps);
//   server->Update(next_view);                       // whenever something changed
//   server->OnFolderEvent(change, name);             // one folder watch feeds all servers
//   server->Retire([] { … });                        // nothing of it is held any more
//
// The destructor is what SIGTERM needs: streams end, no list is sent, the sockets are removed.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "metrics/registry.h"
#include "os/dir_watch.h"
#include "os/event_loop.h"
#include "os/unix_socket.h"
#include "plugin/held_devices.h"
#include "plugin/peer_sockets.h"
#include "plugin/registration.h"
#include "plugin/resource_view.h"
#include "rpc/peer_lines.h"
#include "rpc/plugin_server.h"
#include "rpc/register_call.h"
#include "rpc/server_metrics.h"

namespace ndp::rpc {

class ResourceServer final : private plugin::Registration::Host {
 public:
  // A peer that is killed leaves its socket's file; the line to it tells at once, and for peers to
  // which none can be held a probe does.
  static constexpr Duration kPeerProbe = std::chrono::seconds(1);

  struct Deps {
    os::EventLoop& loop;
    const Clock& clock;
    metrics::Registry& metrics;
  };
  struct Options {
    std::filesystem::path socket_dir;      // where our sockets are
    std::filesystem::path kubelet_socket;  // in the same folder; empty: serve only
    // Something that state() or unhealthy() tells has changed. May not destroy the server.
    std::function<void()> on_change = [] {};
    Duration register_within = RegisterCall::kDeadline;
    Duration peer_probe = kPeerProbe;
  };

  // How long a retiring server waits for its empty list to be on the wire.
  static constexpr Duration kRetireWithin = std::chrono::seconds(1);
  // Serves at once and registers as soon as a kubelet is there; whatever is in the way is retried.
  static std::unique_ptr<ResourceServer> Start(std::shared_ptr<const plugin::ResourceView> view,
                                               Options options, Deps deps);
  ~ResourceServer() override;
  ResourceServer(const ResourceServer&) = delete;
  ResourceServer& operator=(const ResourceServer&) = delete;

  // Streams get the list if it differs; calls are answered from the new snapshot either way.
  void Update(std::shared_ptr<const plugin::ResourceView> view);
  // Sends an empty list and ends; `done` comes once, by the loop, and may destroy the server.
  void Retire(std::function<void()> done);

  // From the watch of socket_dir.
  void OnFolderEvent(os::DirWatch::Change change, std::string_view name);
  // Looks at all that events may have missed. A few times a minute is enough.
  void Poll();
  // Answers by the loop when the server's thread has answered.
  void Ping(std::function<void()> pong);

  const std::string& resource() const { return view_->name(); }
  const std::shared_ptr<const plugin::ResourceView>& view() const { return view_; }
  plugin::Registration::State state() const { return registration_.state(); }
  std::size_t streams() const { return streams_.size(); }
  // What the kubelet may have seen last and how long it has had which ids as Unhealthy: for
  // plugin::StayingIds. Null: nothing yet.
  const plugin::ResourceView* shown() const { return shown_.get(); }
  const plugin::UnhealthyAtKubelet& unhealthy() const { return unhealthy_; }

 private:
  ResourceServer(std::shared_ptr<const plugin::ResourceView> view, Options options, Deps deps);

  Status EnsureSocket(const std::string& endpoint) override;
  void RemoveSocket(const std::string& endpoint) override;
  Result<os::FileIdentity> Connect() override;
  void Register(const std::string& endpoint) override;
  void CancelRegister(const std::string& endpoint) override;
  void Resend() override;

  void OnServerEvent(const ServerEvent& event);
  void LookAtKubeletSocket();
  void NotePeer(const std::string& name);
  void LookForPeers();
  void ProbePeers();
  void OnPeerLineBroken(const std::string& name);
  // After each input to the machine.
  void Settle(bool changed = false);
  void FinishRetiring();

  const Options options_;
  const Deps deps_;
  ServerMetrics metrics_;
  std::shared_ptr<const plugin::ResourceView> view_;
  std::shared_ptr<const plugin::ResourceView> shown_;
  std::map<std::uint64_t, std::shared_ptr<const plugin::ResourceView>> offered_;  // by version
  plugin::UnhealthyAtKubelet unhealthy_;
  std::set<std::uint64_t> streams_;

  plugin::Registration registration_;
  plugin::Registration::State last_state_;
  plugin::PeerSockets peers_;
  PeerLines peer_lines_;
  std::map<std::string, std::unique_ptr<os::UnixListener>> listeners_;
  os::UniqueFd kubelet_;
  std::map<std::string, os::EventLoop::Handle> deadlines_;  // of Registers, by socket
  std::function<void()> retired_;

  os::EventLoop::Handle timer_;
  os::EventLoop::Handle probe_timer_;
  os::EventLoop::Handle retire_timer_;
  std::shared_ptr<ResourceServer*> self_;  // for tasks that may come too late
  std::unique_ptr<PluginServer> server_;   // stopped first
};

// Removes the sockets of this program's registrations that nobody listens on: a process that was
// killed leaves them. For the start, before any server. Returns how many there were.
std::size_t RemoveDeadSockets(const std::filesystem::path& socket_dir);

// Whether another instance, of this program or upstream's, serves any resource. Before any server.
bool AnyoneServes(const std::filesystem::path& socket_dir);

}  // namespace ndp::rpc
