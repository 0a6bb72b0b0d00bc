#include "os/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/log.h"

namespace ndp::os {
namespace {

constexpr int kBacklog = 128;

// sun_path holds 107 characters; a longer path is reached through its folder's descriptor.
struct Address {
  sockaddr_un name{};
  UniqueFd folder;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Result<Address> AddressOf(const std::filesystem::path& path) {
  Address address;
  address.name.sun_family = AF_UNIX;
  std::string text = path.string();
  if (text.size() >= sizeof address.name.sun_path) {
    address.folder.Reset(open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.folder) return ErrnoError(errno, "open folder " + path.parent_path().string());
    text = "/proc/self/fd/" + std::to_string(address.folder.get()) + "/" + path.filename().string();
  }
  if (text.empty() || text.size() >= sizeof address.name.sun_path) {
    return Error(Code::kInvalidArgument, "'" + path.string() + "' is no path for a unix socket");
  }
  std::memcpy(address.name.sun_path, text.data(), text.size());
  return address;
}

UniqueFd NewSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

UniqueFd AcceptFrom(int listener) {
  return UniqueFd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

}  // namespace

UnixListener::UnixListener(EventLoop& loop, Options options, Accepted on_accept)
    : loop_(loop),
      options_(std::move(options)),
      on_accept_(std::make_shared<Accepted>(std::move(on_accept))) {}

Result<std::unique_ptr<UnixListener>> UnixListener::Open(EventLoop& loop, Options options,
                                                         Accepted on_accept) {
  NDP_TRY(Bound bound, Bind(options).Context("listen on " + options.path.string()));
  std::unique_ptr<UnixListener> listener(
      new UnixListener(loop, std::move(options), std::move(on_accept)));
  listener->Install(std::move(bound));
  return listener;
}

UnixListener::~UnixListener() {
  if (!leave_file_ && Intact()) unlink(options_.path.c_str());
}

Result<UnixListener::Bound> UnixListener::Bind(const Options& options) {
  static std::atomic<unsigned> sequence = 0;
  const std::filesystem::path temporary =
      options.path.parent_path() /
      (".s" + std::to_string(getpid()) + "-" + std::to_string(++sequence));
  NDP_TRY(const Address address, AddressOf(temporary));
  Bound bound{.fd = NewSocket(), .identity = {}};
  if (!bound.fd) return ErrnoError(errno, "socket");
  unlink(temporary.c_str());  // left by an earlier process with our id
  if (bind(bound.fd.get(), address.get(), sizeof address.name) != 0) {
    return ErrnoError(errno, "bind in " + options.path.parent_path().string());
  }
  const auto failed = [&](const char* what) {
    const Error error = ErrnoError(errno, what);
    unlink(temporary.c_str());
    return error;
  };
  if (chmod(temporary.c_str(), options.mode) != 0) return failed("set mode");
  auto identity = Identify(temporary);
  if (!identity.ok()) return failed("look at the new socket");
  bound.identity = *identity;
  if (listen(bound.fd.get(), kBacklog) != 0) return failed("listen");
  if (rename(temporary.c_str(), options.path.c_str()) != 0) return failed("rename into place");
  return bound;
}

void UnixListener::Install(Bound bound) {
  watch_.Cancel();
  fd_ = std::move(bound.fd);
  identity_ = bound.identity;
  watch_ = loop_.Watch(fd_.get(), EventLoop::Ready::kRead, [this] { Accept(); });
}

// One connection a round: after the callback `this` may be gone.
void UnixListener::Accept() {
  UniqueFd connection = AcceptFrom(fd_.get());
  if (connection) {
    auto keep = on_accept_;
    (*keep)(std::move(connection));
    return;
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    // The descriptor stays readable: without a pause the loop would spin.
    log::Warning("cannot accept", {{"socket", options_.path.string()},
                                   {"error", ErrnoError(errno, "accept").message()}});
    watch_ = loop_.After(std::chrono::milliseconds(100), [this] {
      watch_ = loop_.Watch(fd_.get(), EventLoop::Ready::kRead, [this] { Accept(); });
    });
  }
}

bool UnixListener::Intact() const {
  const auto found = Identify(options_.path);
  return found.ok() && *found == identity_;
}

Status UnixListener::PutBack() {
  if (Intact()) return {};
  NDP_TRY(Bound bound, Bind(options_).Context("put back " + options_.path.string()));
  std::vector<UniqueFd> waiting;
  while (UniqueFd connection = AcceptFrom(fd_.get())) waiting.push_back(std::move(connection));
  Install(std::move(bound));
  auto keep = on_accept_;
  for (UniqueFd& connection : waiting) (*keep)(std::move(connection));
  return {};
}

Result<UniqueFd> ConnectUnix(const std::filesystem::path& path) {
  const std::string context = "connect to " + path.string();
  NDP_TRY(const Address address, AddressOf(path).Context(context));
  UniqueFd fd = NewSocket();
  if (!fd) return ErrnoError(errno, context + ": socket");
  // A unix socket connects at once or not at all.
  while (connect(fd.get(), address.get(), sizeof address.name) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return Error(Code::kUnavailable, context + ": its queue is full");
    return ErrnoError(errno, context);
  }
  return fd;
}

}  // namespace ndp::os
