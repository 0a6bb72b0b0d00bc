#include "node/examine_apart.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <thread>

#include "doc/json.h"
#include "health/examination_document.h"
#include "os/unique_fd.h"

namespace ndp::node {
namespace {

constexpr std::size_t kMostAnswer = 1 << 20;

health::Examination Failed(const std::string& why) {
  return {.failure = nvml::Failure{nvml::kUnknown, "a session of its own", why},
          .uuid = {},
          .sample = {}};
}

// Starts it with its output in `out`; nothing where it cannot be started.
std::optional<pid_t> Start(const std::vector<std::string>& command, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  // Our threads block signals; a child that could not be ended by them would be no good.
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> argv;
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return std::nullopt;
  return pid;
}

// All that comes until the end of it; nothing where `limit` was not enough.
std::optional<std::string> ReadAll(int fd, const Clock& clock, Duration limit) {
  const MonoTime end = clock.Now() + limit;
  std::string text;
  while (text.size() < kMostAnswer) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - clock.Now()).count();
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int polled = left > 0 ? poll(&ready, 1, static_cast<int>(left)) : 0;
    if (polled == 0) return std::nullopt;
    std::array<char, 4096> buffer{};
    const ssize_t got = polled < 0 ? -1 : read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

health::Examination ExamineBy(const std::vector<std::string>& command, const Clock& clock,
                              Duration limit) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Failed("no pipe");
  const os::UniqueFd in(ends[0]);
  os::UniqueFd out(ends[1]);
  const auto pid = Start(command, out.get());
  out.Reset();
  if (!pid) return Failed("cannot start " + command[0]);
  const auto reap = [pid = *pid] {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  };
  const auto text = ReadAll(in.get(), clock, limit);
  if (!text) {
    // One that hangs in the driver may not die of this for long: nobody waits for it here.
    kill(*pid, SIGKILL);
    std::thread(reap).detach();
    return Failed("no answer in time");
  }
  reap();
  auto document = doc::ParseJson(*text);
  if (!document.ok()) return Failed("it ended without an answer");
  auto examination = health::ExaminationFrom(*document);
  return examination.ok() ? *std::move(examination) : Failed(examination.error().message());
}

health::Examination ExamineApart(const std::string& driver_root, const std::string& pci_bus_id,
                                 health::Depth depth, const Clock& clock, Duration limit) {
  std::vector<std::string> command = {"/proc/self/exe", "examine",
                                      "--driver-root-ctr-path=" + driver_root, pci_bus_id};
  if (depth == health::Depth::kCheap) command.emplace_back("--cheap");
  return ExamineBy(command, clock, limit);
}

}  // namespace ndp::node
