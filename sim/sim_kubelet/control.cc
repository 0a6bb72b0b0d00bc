#include "sim_kubelet/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <thread>

#include "base/text.h"
#include "doc/json.h"

namespace ndp::sim_kubelet {
namespace {

constexpr std::size_t kMaxLine = 16 << 20;

// Lines over a blocking descriptor.
class LineChannel {
 public:
  explicit LineChannel(os::UniqueFd fd) : fd_(std::move(fd)) {
    fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) & ~O_NONBLOCK);
  }

  // nullopt at the end, or where the other side sends no line's end.
  std::optional<std::string> Read() {
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char chunk[4096];
      const ssize_t size = read(fd_.get(), chunk, sizeof chunk);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0 || buffer_.size() > kMaxLine) return std::nullopt;
      buffer_.append(chunk, static_cast<std::size_t>(size));
    }
  }
  bool Write(std::string line) {
    line += '\n';
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t sent = send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

 private:
  os::UniqueFd fd_;
  std::string buffer_;
};

}  // namespace

Result<std::unique_ptr<os::UnixListener>> ServeControl(os::EventLoop& loop,
                                                       const std::filesystem::path& socket,
                                                       Commands& commands) {
  return os::UnixListener::Open(loop, {.path = socket}, [&commands](os::UniqueFd connection) {
    std::thread([&commands, channel = LineChannel(std::move(connection))]() mutable {
      while (const auto line = channel.Read()) {
        if (Trim(*line).empty()) continue;
        if (!channel.Write(commands.Run(*line))) return;
      }
    }).detach();
  });
}

void ReadStandardInput(Commands& commands, EventLog& log) {
  std::thread([&commands, &log] {
    std::string line;
    while (std::getline(std::cin, line)) {
      if (Trim(line).empty()) continue;
      const auto answer = doc::ParseJson(commands.Run(line));
      log.Write("answer", {{"command", line}, {"answer", answer.value_or(doc::Value())}});
    }
  }).detach();
}

Result<std::string> CallControl(const std::filesystem::path& socket, std::string_view line) {
  NDP_TRY(os::UniqueFd fd, os::ConnectUnix(socket));
  LineChannel channel(std::move(fd));
  if (channel.Write(std::string(line))) {
    if (auto answer = channel.Read()) return *std::move(answer);
  }
  return Error(Code::kUnavailable, "the kubelet stand-in ended before it answered");
}

}  // namespace ndp::sim_kubelet
