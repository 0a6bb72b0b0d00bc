// --listen-address: where the status pages are served. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace ndp::web {

struct TcpAddress {
  std::string host;  // empty: every interface
  int port = 0;      // 0: any free one
  bool operator==(const TcpAddress&) const = default;
};

struct UnixAddress {
  std::string path;
  bool operator==(const UnixAddress&) const = default;
};

using Address = std::variant<TcpAddress, UnixAddress>;

// ":9440", "host:9440", "[::1]:9440", or the path of a unix socket, which begins with '/'.
Result<Address> ParseAddress(std::string_view text);

}  // namespace ndp::web
