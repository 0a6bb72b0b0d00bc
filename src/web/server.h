// Status for machines and people over HTTP, on the program's own loop: /livez, /readyz, /metrics,
// /status.json and a page at /. Read only; GET and HEAD. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "doc/value.h"
#include "os/event_loop.h"
#include "web/address.h"

namespace ndp::web {

// Where the answers come from; each is called on the loop.
struct Sources {
  // Calls back when every thread has answered, at once or later, with what is wrong if anything is.
  // Without an answer within live_limit the program counts as hung.
  std::function<void(std::function<void(Status)>)> live;
  std::function<Status()> ready;  // or why not
  std::function<std::string()> metrics;
  std::function<doc::Value()> status;
  Duration live_limit = std::chrono::seconds(2);
};

class Server {
 public:
  // Serves until destroyed. The error names the address and what is in the way.
  static Result<std::unique_ptr<Server>> Open(os::EventLoop& loop, const Address& address,
                                              Sources sources);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Of the first TCP socket; 0 for a unix socket.
  int port() const;

 private:
  struct State;
  explicit Server(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace ndp::web
