#include "node/control.h"

#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "health/board_document.h"

namespace ndp::node {
namespace {
using namespace std::chrono_literals;

// The event wait comes back every 5 s; with that, 10 s tell a call that hangs.
constexpr Duration kLook = 20ms;
constexpr int kLooks = 500;

doc::Value Ok() {
  doc::Value answer = doc::Value::Map();
  answer.Set("ok", true);
  return answer;
}

}  // namespace

Result<std::unique_ptr<Control>> Control::Open(Deps deps,
                                               const std::filesystem::path& socket_folder) {
  std::unique_ptr<Control> control(new Control(std::move(deps)));
  NDP_TRY(control->server_, health::ControlServer::Open(
                                control->deps_.loop, socket_folder,
                                [raw = control.get()](const health::ControlRequest& request,
                                                      const health::ControlServer::Answer& answer) {
                                  raw->On(request, answer);
                                }));
  return control;
}

Control::~Control() = default;

void Control::On(const health::ControlRequest& request,
                 const health::ControlServer::Answer& answer) {
  using Command = health::ControlRequest::Command;
  switch (request.command) {
    case Command::kHealth: {
      doc::Value document = Ok();
      doc::Value board = health::BoardDocument(*deps_.monitor.board());
      for (doc::Value::Entry& entry : board.entries()) document.Set(entry.key, entry.value);
      const auto released = deps_.session.released_since();
      document.Set("released", released.has_value());
      if (released) document.Set("releasedSince", FormatWallTime(*released));
      deps_.handed_out(document);
      return answer(std::move(document));
    }
    case Command::kClear: {
      const auto cleared = deps_.monitor.Clear(request.gpu);
      if (!cleared.ok()) return answer(health::ControlError(cleared.error()));
      doc::Value document = Ok();
      doc::Value& list = document.Set("cleared", doc::Value::List());
      for (const std::string& uuid : *cleared) list.Append(uuid);
      return answer(std::move(document));
    }
    case Command::kRelease:
      return Release(request.for_time, answer);
    case Command::kResume:
      Resume();
      return answer(Ok());
  }
}

void Control::Release(std::optional<Duration> for_time,
                      const health::ControlServer::Answer& answer) {
  log::Info("release of the driver asked for",
            {{"for", for_time ? FormatDuration(*for_time) : "until resume"}});
  resume_timer_.Cancel();
  deps_.session.Release();
  AwaitClosed(kLooks, for_time, answer);
}

void Control::AwaitClosed(int looks_left, std::optional<Duration> for_time,
                          const health::ControlServer::Answer& answer) {
  if (!deps_.session.released()) {
    return answer(health::ControlError(Error(Code::kUnavailable, "resumed in between")));
  }
  const bool closed = deps_.session.closed();
  if (!closed && looks_left > 0) {
    closed_timer_ = deps_.loop.After(kLook, [this, looks_left, for_time, answer] {
      AwaitClosed(looks_left - 1, for_time, answer);
    });
    return;
  }
  // Letting go takes seconds, which are not the operator's.
  if (for_time) {
    resume_timer_ = deps_.loop.After(*for_time, [this] {
      log::Info("the time of the release is over");
      Resume();
    });
  }
  answer(closed ? Ok()
                : health::ControlError(Error(Code::kDeadlineExceeded,
                                             "a driver call hangs: the session is still open")));
}

void Control::Resume() {
  resume_timer_.Cancel();
  deps_.session.Resume();
}

}  // namespace ndp::node
