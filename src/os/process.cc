#include "os/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace ndp::os {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct Attributes {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;

  Attributes() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
  }
  ~Attributes() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
};

void Prepare(const SpawnOptions& options, Attributes& to) {
  // Our blocked and ignored signals would be inherited.
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&to.attributes, &none);
  posix_spawnattr_setsigdefault(&to.attributes, &all);
  posix_spawnattr_setpgroup(&to.attributes, 0);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (options.own_group) flags |= POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&to.attributes, static_cast<short>(flags));

  if (options.stdin_fd >= 0) {
    posix_spawn_file_actions_adddup2(&to.actions, options.stdin_fd, STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&to.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  if (options.stdout_fd >= 0) {
    posix_spawn_file_actions_adddup2(&to.actions, options.stdout_fd, STDOUT_FILENO);
  }
  if (options.stderr_fd >= 0) {
    posix_spawn_file_actions_adddup2(&to.actions, options.stderr_fd, STDERR_FILENO);
  }
}

}  // namespace

sigset_t BlockSignals(std::initializer_list<int> signals) {
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  NDP_CHECK(pthread_sigmask(SIG_BLOCK, &set, &before) == 0);
  return before;
}

void RestoreSignals(const sigset_t& mask) {
  NDP_CHECK(pthread_sigmask(SIG_SETMASK, &mask, nullptr) == 0);
}

std::string ExitStatus::Text() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  const char* name = sigdescr_np(signal);
  return "signal " + std::to_string(signal) + " (" + (name != nullptr ? name : "unknown") + ")";
}

Child::Child(pid_t pid, UniqueFd fd, bool own_group, std::function<void(ExitStatus)> on_exit)
    : pid_(pid), fd_(std::move(fd)), own_group_(own_group), on_exit_(std::move(on_exit)) {}

Child::~Child() {
  if (!running_) return;
  Signal(SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
}

void Child::Signal(int signal) {
  // Not reaped yet, so the id is still this child's.
  if (running_) kill(own_group_ ? -pid_ : pid_, signal);
}

void Child::Reap() {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) {
    return;
  }
  running_ = false;
  watch_.Cancel();
  const bool exited = info.si_code == CLD_EXITED;
  auto on_exit = std::move(on_exit_);
  if (on_exit) {
    on_exit({.code = exited ? info.si_status : 0, .signal = exited ? 0 : info.si_status});
  }
}

Result<std::unique_ptr<Child>> Spawn(EventLoop& loop, const SpawnOptions& options,
                                     std::function<void(ExitStatus)> on_exit) {
  if (options.argv.empty()) return Error(Code::kInvalidArgument, "start a program: no name given");
  const std::string context = "start " + options.argv[0];
  Attributes attributes;
  Prepare(options, attributes);
  const std::vector<char*> argv = Pointers(options.argv);
  const std::vector<char*> environment =
      options.environment ? Pointers(*options.environment) : std::vector<char*>();
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &attributes.actions, &attributes.attributes,
                                 argv.data(), options.environment ? environment.data() : environ);
  if (error != 0) return ErrnoError(error, context);

  // glibc 2.36 declares pidfd_open without C linkage.
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const int pidfd_error = errno;
  std::unique_ptr<Child> child(
      new Child(pid, std::move(fd), options.own_group, std::move(on_exit)));
  if (!child->fd_) {
    return Error(Code::kUnsupported,
                 ErrnoError(pidfd_error, context + ": pidfd (Linux 5.3 or later)").message());
  }
  child->watch_ =
      loop.Watch(child->fd_.get(), EventLoop::Ready::kRead, [self = child.get()] { self->Reap(); });
  return child;
}

}  // namespace ndp::os
