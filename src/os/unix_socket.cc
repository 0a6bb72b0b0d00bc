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
#include <utility>
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

Result<UnixSocketFile> UnixSocketFile::Open(const std::filesystem::path& path, mode_t mode) {
  static std::atomic<unsigned> sequence = 0;
  const std::string context = "listen on " + path.string();
  const std::filesystem::path temporary =
      path.parent_path() / (".s" + std::to_string(getpid()) + "-" + std::to_string(++sequence));
  NDP_TRY(const Address address, AddressOf(temporary).Context(context));
  UniqueFd fd = NewSocket();
  if (!fd) return ErrnoError(errno, context + ": socket");
  unlink(temporary.c_str());  // left by an earlier process with our id
  if (bind(fd.get(), address.get(), sizeof address.name) != 0) {
    const Error error = ErrnoError(errno, context + ": bind");
    std::error_code ec;
    const bool there = std::filesystem::is_directory(path.parent_path(), ec);
    // Some file systems, such as /proc, say ENOENT to whoever makes a file in a folder of theirs.
    return error.code() == Code::kNotFound && there ? Error(Code::kUnsupported, error.message())
                                                    : error;
  }
  const auto failed = [&](const char* what) {
    const Error error = ErrnoError(errno, context + ": " + what);
    unlink(temporary.c_str());
    return error;
  };
  if (chmod(temporary.c_str(), mode) != 0) return failed("set mode");
  const auto identity = Identify(temporary);
  if (!identity.ok()) return failed("look at the new socket");
  if (listen(fd.get(), kBacklog) != 0) return failed("listen");
  if (rename(temporary.c_str(), path.c_str()) != 0) return failed("rename into place");
  return UnixSocketFile(path, std::move(fd), *identity);
}

UnixSocketFile& UnixSocketFile::operator=(UnixSocketFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(identity_, other.identity_);
  std::swap(owns_file_, other.owns_file_);
  return *this;
}

UnixSocketFile::~UnixSocketFile() {
  if (fd_ && owns_file_ && Intact()) unlink(path_.c_str());
}

bool UnixSocketFile::Intact() const {
  const auto found = Identify(path_);
  return found.ok() && *found == identity_;
}

UnixListener::UnixListener(EventLoop& loop, Options options, UnixSocketFile file,
                           Accepted on_accept)
    : loop_(loop),
      options_(std::move(options)),
      on_accept_(std::make_shared<Accepted>(std::move(on_accept))),
      file_(std::move(file)) {
  WatchFile();
}

Result<std::unique_ptr<UnixListener>> UnixListener::Open(EventLoop& loop, Options options,
                                                         Accepted on_accept) {
  NDP_TRY(UnixSocketFile file, UnixSocketFile::Open(options.path, options.mode));
  return std::unique_ptr<UnixListener>(
      new UnixListener(loop, std::move(options), std::move(file), std::move(on_accept)));
}

void UnixListener::WatchFile() {
  watch_ = loop_.Watch(file_.fd(), EventLoop::Ready::kRead, [this] { Accept(); });
}

// One connection a round: after the callback `this` may be gone.
void UnixListener::Accept() {
  UniqueFd connection = AcceptFrom(file_.fd());
  if (connection) {
    auto keep = on_accept_;
    (*keep)(std::move(connection));
    return;
  }
  if (errno == EAGAIN) starved_ = false;  // nobody waits
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    // The descriptor stays readable: without a pause the loop would spin.
    if (!std::exchange(starved_, true)) {
      log::Warning("cannot accept", {{"socket", options_.path.string()},
                                     {"error", ErrnoError(errno, "accept").message()}});
    }
    watch_ = loop_.After(std::chrono::milliseconds(100), [this] { WatchFile(); });
  }
}

Status UnixListener::PutBack() {
  if (Intact()) return {};
  NDP_TRY(UnixSocketFile file,
          UnixSocketFile::Open(options_.path, options_.mode).Context("put the socket back"));
  std::vector<UniqueFd> waiting;
  while (UniqueFd connection = AcceptFrom(file_.fd())) waiting.push_back(std::move(connection));
  watch_.Cancel();
  file_ = std::move(file);
  WatchFile();
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
    if (errno == EAGAIN) return Error(Code::kDeadlineExceeded, context + ": its queue is full");
    const Error error = ErrnoError(errno, context);
    std::error_code ec;
    const auto status = std::filesystem::status(path, ec);
    // A mount makes a folder where it finds nothing; the kernel calls that refused, too.
    if (!std::filesystem::exists(status) || std::filesystem::is_socket(status)) return error;
    return Error(error.code(), context + ": " +
                                   (std::filesystem::is_directory(status) ? "a folder" : "a file") +
                                   ", want a socket");
  }
  return fd;
}

bool SomebodyListens(const Result<UniqueFd>& connection) {
  return connection.ok() || connection.error().code() == Code::kDeadlineExceeded;
}

Result<IdentifiedConnection> ConnectUnixIdentified(const std::filesystem::path& path) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto before = Identify(path);
    NDP_TRY(UniqueFd fd, ConnectUnix(path));
    NDP_TRY(const FileIdentity after, Identify(path));
    // Replaced in between: the connection may be to the old one.
    if (!before.ok() || *before != after) continue;
    return IdentifiedConnection{.fd = std::move(fd), .file = after};
  }
  return Error(Code::kUnavailable,
               "connect to " + path.string() + ": the file is replaced all the time");
}

}  // namespace ndp::os
