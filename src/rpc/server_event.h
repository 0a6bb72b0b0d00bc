// What a plugin server tells its owner. Values, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/result.h"

namespace ndp::rpc {

struct StreamOpened {
  std::string endpoint;      // the socket its connection came in by
  std::uint64_t stream = 0;  // unique in the process
};
struct StreamEnded {
  std::string endpoint;
  std::uint64_t stream = 0;
};
// A list is on the wire.
struct ListSent {
  std::uint64_t stream = 0;
  std::uint64_t version = 0;
};
struct Registered {
  std::string endpoint;
  Status result;
};
// After Retire: no stream is left.
struct Retired {};

using ServerEvent = std::variant<StreamOpened, StreamEnded, ListSent, Registered, Retired>;

}  // namespace ndp::rpc
