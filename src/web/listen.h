// Listening sockets for an address. Private to the room.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"
#include "os/unix_socket.h"
#include "web/address.h"

namespace ndp::web {

struct Listening {
  std::vector<os::UniqueFd> tcp;  // a name may have several addresses
  std::optional<os::UnixSocketFile> unix_socket;
  int port = 0;
};

Result<Listening> Listen(const Address& address);

}  // namespace ndp::web
