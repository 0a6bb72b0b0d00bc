// The gRPC server of one resource: answers the kubelet's calls from the resource's snapshot and
// keeps its list streams fed. It binds and dials nothing: connections are handed to it.
//
// One completion queue, one thread; methods may be called from one other thread (the loop) and
// return at once, but for the destructor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "os/unique_fd.h"
#include "plugin/resource_view.h"
#include "rpc/server_event.h"
#include "rpc/server_metrics.h"

namespace ndp::rpc {

class Queue;
class Service;

// Sets gRPC up, once per process, on a thread of its own: the first server waits for it otherwise.
// Optional, any thread.
[[nodiscard]] std::jthread WarmUp();

class PluginServer {
 public:
  // `on_event` is called on the server's own thread. `clock` and `metrics` must outlive the server.
  PluginServer(std::shared_ptr<const plugin::ResourceView> view, const Clock& clock,
               ServerMetrics& metrics, std::function<void(ServerEvent)> on_event);
  // Ends streams and calls, sends no list, and waits for that: milliseconds.
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // A connected, non-blocking descriptor that came in by this socket.
  void Adopt(os::UniqueFd connection, std::string endpoint);
  // Registers over a connection to the kubelet; answered by a Registered event.
  void Register(os::UniqueFd kubelet, std::string endpoint);
  void CancelRegister(std::string endpoint);

  // What is answered from now on; every stream gets the list if it differs from the last one.
  // Returns the list's version, as in ListSent.
  std::uint64_t Show(std::shared_ptr<const plugin::ResourceView> view);
  // The list once more, as a new version.
  std::uint64_t Resend();
  // Sends an empty list and ends the streams; then a Retired event comes.
  void Retire();

  // Calls back on the server's thread: it still serves.
  void Ping(std::move_only_function<void()> pong);

 private:
  std::shared_ptr<const plugin::ResourceView> view_;
  std::uint64_t version_ = 1;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace ndp::rpc
