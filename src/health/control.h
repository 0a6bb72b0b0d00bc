// How the command line speaks to running instances: one unix socket each in the folder `.ndp/` of
// the socket folder (0600; the folder 0700), one JSON line asked, one answered, then closed.
//
//   {"command":"clear","gpu":"3"}  →  {"ok":true,"cleared":["GPU-…"]}
//   {"command":"release","for":"2m0s"}  →  {"ok":true}, once the driver is let go of
//
// Loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "doc/value.h"
#include "os/event_loop.h"
#include "os/unique_fd.h"
#include "os/unix_socket.h"

namespace ndp::health {

struct ControlRequest {
  enum class Command { kHealth, kClear, kRelease, kResume };
  Command command = Command::kHealth;
  std::string gpu;                   // of clear
  std::optional<Duration> for_time;  // of release; nullopt: until resume
  bool operator==(const ControlRequest&) const = default;
};

// Pure. kInvalidArgument says what would be right.
Result<ControlRequest> ParseControlRequest(std::string_view line);
std::string ControlRequestLine(const ControlRequest& request);

// {"ok":false,"error":"…"}
doc::Value ControlError(const Error& error);

class ControlServer {
 public:
  // Answers now or later, once; a client that has gone meanwhile is no fault.
  using Answer = std::function<void(doc::Value)>;
  using Handler = std::function<void(const ControlRequest&, Answer)>;

  // Makes `<socket folder>/.ndp/` and a socket of its own in it; those of instances that have died
  // are removed.
  static Result<std::unique_ptr<ControlServer>> Open(os::EventLoop& loop,
                                                     const std::filesystem::path& socket_folder,
                                                     Handler handler);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  const std::filesystem::path& path() const { return listener_->path(); }
  // After the kubelet has cleaned the folder.
  Status PutBack() { return listener_->PutBack(); }

 private:
  struct Connection;
  ControlServer(os::EventLoop& loop, Handler handler);
  void Accept(os::UniqueFd fd);
  void OnReadable(const std::shared_ptr<Connection>& connection);
  void Drop(const std::shared_ptr<Connection>& connection);

  os::EventLoop& loop_;
  Handler handler_;
  std::list<std::shared_ptr<Connection>> connections_;
  std::unique_ptr<os::UnixListener> listener_;
};

// The sockets of all instances, the living and the dead; none where there is no such folder. An
// error where this user may not look.
Result<std::vector<std::filesystem::path>> ControlSockets(
    const std::filesystem::path& socket_folder);

// One request to one instance; waits for the answer, at most `limit`. For the command line: blocks.
// kUnavailable: nobody listens any more.
Result<doc::Value> Ask(const std::filesystem::path& socket, const ControlRequest& request,
                       const Clock& clock, Duration limit);

}  // namespace ndp::health
