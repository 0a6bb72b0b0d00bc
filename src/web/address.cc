#include "web/address.h"

#include <fmt/core.h>

#include <optional>

#include "base/text.h"

namespace ndp::web {

Result<Address> ParseAddress(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return Error(Code::kInvalidArgument,
                 fmt::format("address '{}': {}; want ':9440', 'host:9440', '[::1]:9440' or the "
                             "path of a unix socket beginning with '/'",
                             text, why));
  };
  if (text.starts_with('/')) {
    if (text.ends_with('/')) return wrong("a folder is no socket");
    return Address(UnixAddress{.path = std::string(text)});
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("no port");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    if (!host.ends_with(']') || host.size() < 4) return wrong("no ']' before the port");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 address needs brackets");
  }
  const auto port = ParseUnsigned(text.substr(colon + 1));
  if (!port || *port > 65535) return wrong("the port is not a number from 0 to 65535");
  return Address(TcpAddress{.host = std::string(host), .port = static_cast<int>(*port)});
}

}  // namespace ndp::web
