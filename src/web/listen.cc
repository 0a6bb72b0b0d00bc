#include "web/listen.h"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

namespace ndp::web {
namespace {

constexpr int kBacklog = 64;

Result<os::UniqueFd> ListenAt(const addrinfo& at, bool every_interface) {
  os::UniqueFd fd(socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at.ai_protocol));
  if (!fd) return ErrnoError(errno, "socket");
  const int on = 1;
  const int v6_only = every_interface ? 0 : 1;  // "::" serves IPv4 too
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ai_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  }
  if (bind(fd.get(), at.ai_addr, at.ai_addrlen) != 0) return ErrnoError(errno, "bind");
  if (listen(fd.get(), kBacklog) != 0) return ErrnoError(errno, "listen");
  return fd;
}

int PortOf(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
}

Result<Listening> ListenTcp(const TcpAddress& address) {
  const bool every_interface = address.host.empty();
  const std::string context = fmt::format("listen on {}:{}", address.host, address.port);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(every_interface ? "::" : address.host.c_str(),
                                 std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0) return Error(Code::kInvalidArgument, context + ": " + gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);

  Listening listening;
  std::optional<Error> error;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (auto fd = ListenAt(*at, every_interface); fd.ok()) {
      listening.tcp.push_back(std::move(*fd));
    } else if (!error) {
      error = fd.error();
    }
  }
  if (listening.tcp.empty()) return error->WithContext(context);
  listening.port = PortOf(listening.tcp.front().get());
  return listening;
}

}  // namespace

Result<Listening> Listen(const Address& address) {
  if (const auto* unix_address = std::get_if<UnixAddress>(&address)) {
    // Anyone who may enter the folder may read: it is what a metrics scraper needs.
    NDP_TRY(auto file, os::UnixSocketFile::Open(unix_address->path, 0666));
    return Listening{.tcp = {}, .unix_socket = std::move(file), .port = 0};
  }
  const auto& tcp = std::get<TcpAddress>(address);
  auto listening = ListenTcp(tcp);
  // A kernel without IPv6.
  if (!listening.ok() && tcp.host.empty()) return ListenTcp({.host = "0.0.0.0", .port = tcp.port});
  return listening;
}

}  // namespace ndp::web
