// Commands to the kubelet stand-in, one JSON object a line, each answered by one:
//
//   {"command":"allocate","resource":"nvidia.com/gpu","count":2,"pod":"p"}
//   {"ok":true,"devices":["GPU-…","GPU-…"],"response":{"envs":{…},…}}
//   {"ok":false,"error":"…"}
//
// command_fields.h has them all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "os/event_loop.h"
#include "sim_kubelet/kubelet.h"
#include "sim_kubelet/streams.h"

namespace ndp::sim_kubelet {

class Commands {
 public:
  // `quit` ends the program.
  Commands(os::EventLoop::Poster loop, Kubelet& kubelet, std::function<void()> quit);

  // Any thread but the loop's; blocks as long as the command takes. Returns the answer's line.
  std::string Run(std::string_view line);

 private:
  Result<doc::Value> Dispatch(const doc::Value& command);
  Result<doc::Value> Start(const doc::Value& command, bool stop_first);
  Status Stop(const doc::Value& command);
  Status OpenStream(const std::string& resource, const std::string& stream);

  os::EventLoop::Poster loop_;
  Kubelet& kubelet_;
  std::function<void()> quit_;
  Streams streams_;
};

}  // namespace ndp::sim_kubelet
