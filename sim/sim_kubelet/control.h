// Where commands come from: standard input, and a unix socket for one-shot calls and tests. Each
// source has a thread of its own, since commands block.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/event_loop.h"
#include "os/unix_socket.h"
#include "sim_kubelet/commands.h"
#include "sim_kubelet/event_log.h"

namespace ndp::sim_kubelet {

// Detached threads run the commands of each connection, so `commands` must live as long as the
// program. Loop thread.
Result<std::unique_ptr<os::UnixListener>> ServeControl(os::EventLoop& loop,
                                                       const std::filesystem::path& socket,
                                                       Commands& commands);

// Runs the lines of standard input; answers are events {"event":"answer",…}. At its end the program
// goes on.
void ReadStandardInput(Commands& commands, EventLog& log);

// One command to a stand-in that runs elsewhere, and its answer.
Result<std::string> CallControl(const std::filesystem::path& socket, std::string_view line);

}  // namespace ndp::sim_kubelet
