#include "rpc/peer_lines.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "os/unix_socket.h"

namespace ndp::rpc {

PeerLines::PeerLines(os::EventLoop& loop, std::filesystem::path folder,
                     std::function<void(const std::string&)> broken)
    : loop_(loop), folder_(std::move(folder)), broken_(std::move(broken)) {}

bool PeerLines::Hold(const std::string& name) {
  const auto at = lines_.find(name);
  if (at != lines_.end() && at->second.fd) return true;
  auto connection = os::ConnectUnix(folder_ / name);
  if (!connection.ok()) {
    if (os::SomebodyListens(connection)) return true;
    lines_.erase(name);
    return false;
  }
  Line& line = lines_[name];
  if (line.attempts++ >= kAttempts) return true;
  line.fd = *std::move(connection);
  line.watch =
      loop_.Watch(line.fd.get(), os::EventLoop::Ready::kRead, [this, name] { OnReadable(name); });
  return true;
}

void PeerLines::Refresh() {
  for (auto& [name, line] : lines_) line.attempts = 0;
}

void PeerLines::OnReadable(const std::string& name) {
  Line& line = lines_.at(name);
  char greeting[1024];  // a gRPC server speaks first
  const ssize_t got = recv(line.fd.get(), greeting, sizeof greeting, MSG_DONTWAIT);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  // `name` goes with the watch.
  const std::string ended = name;  // NOLINT(performance-unnecessary-copy-initialization)
  line.watch.Cancel();
  line.fd.Reset();
  broken_(ended);
}

}  // namespace ndp::rpc
