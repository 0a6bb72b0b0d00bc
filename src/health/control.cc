#include "health/control.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <utility>

#include "base/duration.h"
#include "doc/json.h"

namespace ndp::health {
namespace {

using Command = ControlRequest::Command;

constexpr std::string_view kFolder = ".ndp";
constexpr std::size_t kLongestRequest = 4096;
constexpr std::size_t kLongestAnswer = 4 << 20;
constexpr std::size_t kMostConnections = 16;
constexpr Duration kRequestTime = std::chrono::seconds(5);

constexpr std::array<std::pair<std::string_view, Command>, 4> kCommands = {{
    {"health", Command::kHealth},
    {"clear", Command::kClear},
    {"release", Command::kRelease},
    {"resume", Command::kResume},
}};

// An answer is small and the peer is waiting for it: written whole, or the peer is gone.
void WriteLine(int fd, const doc::Value& answer) {
  const std::string line = doc::ToJson(answer) + "\n";
  std::size_t at = 0;
  while (at < line.size()) {
    const ssize_t wrote = send(fd, line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (wrote > 0) {
      at += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

Result<ControlRequest> ParseControlRequest(std::string_view line) {
  NDP_TRY(const doc::Value document, doc::ParseJson(line).Context("request"));
  const std::string name = document.TextAt("command");
  const auto found =
      std::ranges::find(kCommands, name, [](const auto& each) { return each.first; });
  if (found == kCommands.end()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("unknown command '{}': health, clear, release or resume", name));
  }
  ControlRequest request{.command = found->second, .gpu = document.TextAt("gpu"), .for_time = {}};
  if (request.command == Command::kClear && request.gpu.empty()) {
    return Error(Code::kInvalidArgument, "clear: name a GPU (UUID, index or PCI address) or 'all'");
  }
  if (const std::string text = document.TextAt("for"); !text.empty()) {
    NDP_TRY(const Duration time, ParseDuration(text).Context("release: for"));
    if (time <= Duration::zero()) {
      return Error(Code::kInvalidArgument, "release: for: give a duration above 0");
    }
    request.for_time = time;
  }
  return request;
}

std::string ControlRequestLine(const ControlRequest& request) {
  doc::Value line = doc::Value::Map();
  for (const auto& [name, command] : kCommands) {
    if (command == request.command) line.Set("command", name);
  }
  if (!request.gpu.empty()) line.Set("gpu", request.gpu);
  if (request.for_time) line.Set("for", FormatDuration(*request.for_time));
  return doc::ToJson(line) + "\n";
}

doc::Value ControlError(const Error& error) {
  doc::Value answer = doc::Value::Map();
  answer.Set("ok", false);
  answer.Set("error", error.message());
  return answer;
}

// One client: its request so far, then its answer.
struct ControlServer::Connection {
  os::UniqueFd fd;
  std::string text;
  bool asked = false;
  os::EventLoop::Handle watch;
  os::EventLoop::Handle limit;
};

ControlServer::ControlServer(os::EventLoop& loop, Handler handler)
    : loop_(loop), handler_(std::move(handler)) {}

ControlServer::~ControlServer() {
  while (!connections_.empty()) Drop(connections_.front());
}

Result<std::unique_ptr<ControlServer>> ControlServer::Open(
    os::EventLoop& loop, const std::filesystem::path& socket_folder, Handler handler) {
  const std::filesystem::path folder = socket_folder / kFolder;
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoError(errno, folder.string());
  NDP_TRY(const auto sockets, ControlSockets(socket_folder));
  for (const std::filesystem::path& path : sockets) {
    const auto living = os::ConnectUnix(path);
    if (!living.ok() && living.error().code() == Code::kUnavailable) {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  }
  std::unique_ptr<ControlServer> server(new ControlServer(loop, std::move(handler)));
  // Two pods may have the same process id, so chance makes the name one of its own.
  std::random_device chance;
  const auto path = folder / fmt::format("{}-{:08x}.sock", getpid(), chance());
  NDP_TRY(server->listener_, os::UnixListener::Open(loop, {.path = path, .mode = 0600},
                                                    [raw = server.get()](os::UniqueFd fd) {
                                                      raw->Accept(std::move(fd));
                                                    }));
  return server;
}

void ControlServer::Accept(os::UniqueFd fd) {
  if (connections_.size() >= kMostConnections) {
    return WriteLine(fd.get(),
                     ControlError(Error(
                         Code::kUnavailable,
                         fmt::format("{} clients are being answered already: try again in a moment",
                                     kMostConnections))));
  }
  auto connection = std::make_shared<Connection>();
  connection->fd = std::move(fd);
  connection->watch = loop_.Watch(connection->fd.get(), os::EventLoop::Ready::kRead,
                                  [this, connection] { OnReadable(connection); });
  connection->limit = loop_.After(kRequestTime, [this, connection] { Drop(connection); });
  connections_.push_back(std::move(connection));
}

void ControlServer::OnReadable(const std::shared_ptr<Connection>& connection) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const auto keep = connection;  // the watch that calls us is dropped below
  std::array<char, 1024> buffer{};
  const ssize_t got = recv(keep->fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0 && !keep->asked) keep->text.append(buffer.data(), static_cast<std::size_t>(got));
  const std::size_t end = keep->text.find('\n');
  if (end == std::string::npos || keep->asked) {
    if (got <= 0 || keep->text.size() > kLongestRequest) Drop(keep);
    return;
  }
  keep->asked = true;
  keep->limit.Cancel();
  const auto request = ParseControlRequest(std::string_view(keep->text).substr(0, end));
  if (!request.ok()) {
    WriteLine(keep->fd.get(), ControlError(request.error()));
    return Drop(keep);
  }
  // Answered later perhaps: the client may be gone by then, and so may the server.
  handler_(*request, [this, weak = std::weak_ptr<Connection>(keep)](const doc::Value& answer) {
    const auto client = weak.lock();
    if (client == nullptr || !client->fd) return;
    WriteLine(client->fd.get(), answer);
    Drop(client);
  });
}

void ControlServer::Drop(const std::shared_ptr<Connection>& connection) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const auto keep = connection;
  keep->watch.Cancel();
  keep->limit.Cancel();
  keep->fd.Reset();
  std::erase(connections_, keep);
}

Result<std::vector<std::filesystem::path>> ControlSockets(
    const std::filesystem::path& socket_folder) {
  std::vector<std::filesystem::path> sockets;
  const std::filesystem::path folder = socket_folder / kFolder;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::permission_denied) {
    return ErrnoError(EACCES, folder.string() + ": run it as the user of the plugin (root)");
  }
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (entries->path().extension() == ".sock") sockets.push_back(entries->path());
  }
  std::ranges::sort(sockets);
  return sockets;
}

Result<doc::Value> Ask(const std::filesystem::path& socket, const ControlRequest& request,
                       const Clock& clock, Duration limit) {
  NDP_TRY(const os::UniqueFd fd, os::ConnectUnix(socket).Context(socket.string()));
  const std::string line = ControlRequestLine(request);
  const ssize_t sent = send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL);
  // One that takes no more clients has said so before it hung up.
  const bool hung_up = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
  if (!hung_up && sent != static_cast<ssize_t>(line.size())) {
    return ErrnoError(errno, socket.string());
  }
  std::string answer;
  const MonoTime start = clock.Now();
  while (answer.find('\n') == std::string::npos) {
    const Duration spent = clock.Now() - start;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - spent).count();
    pollfd ready{.fd = fd.get(), .events = POLLIN, .revents = 0};
    const int polled = left > 0 ? poll(&ready, 1, static_cast<int>(left)) : 0;
    if (polled == 0) {
      return Error(Code::kDeadlineExceeded,
                   fmt::format("{}: no answer within {}", socket.string(), FormatDuration(limit)));
    }
    std::array<char, 4096> buffer{};
    const ssize_t got = polled < 0 ? -1 : recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0 && errno != ECONNRESET) return ErrnoError(errno, socket.string());
    if (got <= 0) {
      return Error(Code::kUnavailable, socket.string() + ": the instance went away");
    }
    answer.append(buffer.data(), static_cast<std::size_t>(got));
    if (answer.size() > kLongestAnswer) {
      return Error(Code::kInternal, socket.string() + ": an answer without end");
    }
  }
  answer.resize(answer.find('\n'));
  return doc::ParseJson(answer).Context(socket.string());
}

}  // namespace ndp::health
