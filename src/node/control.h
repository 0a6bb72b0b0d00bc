// Answers what operators ask of a running instance (`ndp health`, `ndp health clear`, `ndp
// release`, `ndp resume`) over the control socket. Loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"
#include "doc/value.h"
#include "health/control.h"
#include "health/monitor.h"
#include "node/driver_session.h"
#include "os/event_loop.h"

namespace ndp::node {

class Control {
 public:
  // All outlive it.
  struct Deps {
    os::EventLoop& loop;
    health::Monitor& monitor;
    DriverSession& session;
    // What is handed out and what not, added to the answer of `ndp health`.
    std::function<void(doc::Value& document)> handed_out;
  };

  // The instance works without it: a failure is worth a warning.
  static Result<std::unique_ptr<Control>> Open(Deps deps,
                                               const std::filesystem::path& socket_folder);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // After the socket folder was cleaned or made anew. Nothing to do where the socket is there.
  Status PutBack() { return server_->PutBack(); }

 private:
  explicit Control(Deps deps) : deps_(std::move(deps)) {}
  void On(const health::ControlRequest& request, const health::ControlServer::Answer& answer);
  void Release(std::optional<Duration> for_time, const health::ControlServer::Answer& answer);
  void AwaitClosed(int looks_left, std::optional<Duration> for_time,
                   const health::ControlServer::Answer& answer);
  void Resume();

  Deps deps_;
  os::EventLoop::Handle resume_timer_;
  os::EventLoop::Handle closed_timer_;
  std::unique_ptr<health::ControlServer> server_;
};

}  // namespace ndp::node
