// Children of the program, and its signals.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/event_loop.h"
#include "os/unique_fd.h"

namespace ndp::os {

// In main before the first thread: every later thread inherits it, and EventLoop::OnSignal needs
// it. Returns the mask from before.
sigset_t BlockSignals(std::initializer_list<int> signals);
// The mask of this thread: what BlockSignals returned.
void RestoreSignals(const sigset_t& mask);

struct ExitStatus {
  int code = 0;    // of exit
  int signal = 0;  // that ended it, or 0
  bool ok() const { return code == 0 && signal == 0; }
  std::string Text() const;  // "exit code 3", "signal 9 (Killed)"
};

struct SpawnOptions {
  std::vector<std::string> argv;  // argv[0] with a slash, or looked for in PATH
  // "KEY=value" each; without it the child inherits ours.
  std::optional<std::vector<std::string>> environment = std::nullopt;
  // Descriptors that become the child's own; -1 keeps ours (stdin: /dev/null).
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  // A group of its own: a terminal's ^C reaches only us, Signal reaches its children too.
  bool own_group = false;
};

// A running child. Loop thread only.
class Child {
 public:
  // Kills it, and waits for that, if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }
  // Nothing where it has ended.
  void Signal(int signal);

 private:
  friend Result<std::unique_ptr<Child>> Spawn(EventLoop&, const SpawnOptions&,
                                              std::function<void(ExitStatus)>);
  Child(pid_t pid, UniqueFd fd, bool own_group, std::function<void(ExitStatus)> on_exit);
  void Reap();

  pid_t pid_;
  UniqueFd fd_;  // a pidfd
  bool own_group_;
  bool running_ = true;
  std::function<void(ExitStatus)> on_exit_;
  EventLoop::Handle watch_;
};

// Starts it with default signal handling and an empty mask. `on_exit` runs once on the loop, after
// the child was reaped, and may destroy the Child; never from the destructor.
Result<std::unique_ptr<Child>> Spawn(EventLoop& loop, const SpawnOptions& options,
                                     std::function<void(ExitStatus)> on_exit);

}  // namespace ndp::os
