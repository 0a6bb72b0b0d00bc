// A connection to each peer's socket, held and never used: it breaks in the moment in which the
// peer's process ends, however it ends, where its socket's file would stay. Loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "os/event_loop.h"
#include "os/unique_fd.h"

namespace ndp::rpc {

class PeerLines {
 public:
  // `broken`: look at that peer again. It may have ended, or only closed the connection.
  PeerLines(os::EventLoop& loop, std::filesystem::path folder,
            std::function<void(const std::string& name)> broken);

  // Whether somebody accepts at that socket; from then on a line is held. A peer that goes on
  // closing its lines is held no more than kAttempts times until Refresh().
  bool Hold(const std::string& name);
  void Drop(const std::string& name) { lines_.erase(name); }
  void Refresh();

 private:
  static constexpr int kAttempts = 3;

  struct Line {
    os::UniqueFd fd;
    int attempts = 0;
    os::EventLoop::Handle watch;  // ends before the descriptor does
  };
  void OnReadable(const std::string& name);

  os::EventLoop& loop_;
  const std::filesystem::path folder_;
  const std::function<void(const std::string&)> broken_;
  std::map<std::string, Line> lines_;
};

}  // namespace ndp::rpc
