// `ndp health`, `ndp release`, `ndp resume`: asks the instances that run on this node, over their
// control sockets.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/duration.h"
#include "cmd/arguments.h"
#include "cmd/command.h"
#include "doc/json.h"
#include "health/board_document.h"
#include "health/control.h"

namespace ndp::cmd {
namespace {
using namespace std::chrono_literals;
using health::ControlRequest;

constexpr const char* kKubeletSocket = "/var/lib/kubelet/device-plugins/kubelet.sock";
// The event wait ends within 5 s and a release is given up after 10 s.
constexpr Duration kPatience = 15s;

// Where the instances' sockets are follows from the option that the plugin has too.
void AddSocketOption(Arguments& arguments, std::string& kubelet_socket) {
  arguments.OptionOrEnv("--kubelet-socket", "KUBELET_SOCKET", kubelet_socket,
                        "the kubelet's socket, beside which the plugin's are");
}

std::filesystem::path SocketFolder(const std::string& kubelet_socket) {
  return std::filesystem::path(kubelet_socket.empty() ? kKubeletSocket : kubelet_socket)
      .parent_path();
}

// The answers of all living instances; a dead one's socket is passed over.
Result<std::vector<doc::Value>> AskAll(const std::string& kubelet_socket,
                                       const ControlRequest& request) {
  const std::filesystem::path folder = SocketFolder(kubelet_socket);
  std::vector<doc::Value> answers;
  const SystemClock clock;
  NDP_TRY(const auto sockets, health::ControlSockets(folder));
  for (const std::filesystem::path& socket : sockets) {
    auto answer = health::Ask(socket, request, clock, kPatience);
    if (!answer.ok()) {
      if (answer.error().code() == Code::kUnavailable) continue;
      return std::move(answer).error();
    }
    if (const doc::Value* error = answer->Find("error")) {
      return Error(Code::kInternal, error->Text());
    }
    answers.push_back(*std::move(answer));
  }
  if (answers.empty()) {
    return Error(Code::kNotFound,
                 fmt::format("no instance of the plugin answers in {}: is it running, and is "
                             "--kubelet-socket the one it was given?",
                             (folder / ".ndp").string()));
  }
  return answers;
}

int Fail(const std::string& name, const Error& error) {
  fmt::print(stderr, "{}: {}\n", name, error.message());
  return kFailed;
}

}  // namespace

int RunHealth(const std::string& name, const std::vector<std::string>& args) {
  Arguments arguments(name, "Shows the verdict of every device and why; or clears a GPU by hand.");
  std::string kubelet_socket = kKubeletSocket;
  bool json = false;
  AddSocketOption(arguments, kubelet_socket);
  arguments.Flag("--json", json, "print JSON");
  std::string gpu;
  Arguments clear = arguments.SubCommand("clear", "take a GPU for healthy again, in all instances");
  clear.Required("GPU", gpu, "UUID, index or PCI address, or 'all'");
  if (const auto status = arguments.Parse(args)) return *status;

  if (clear.chosen()) {
    const auto answers =
        AskAll(kubelet_socket, {.command = ControlRequest::Command::kClear, .gpu = gpu});
    if (!answers.ok()) return Fail(name, answers.error());
    if (const doc::Value* cleared = answers->front().Find("cleared")) {
      for (const doc::Value& uuid : cleared->items()) fmt::print("cleared {}\n", uuid.Text());
    }
    return kOk;
  }
  // All instances see the same GPUs: the first that answers speaks for them.
  const auto answers = AskAll(kubelet_socket, {.command = ControlRequest::Command::kHealth});
  if (!answers.ok()) return Fail(name, answers.error());
  const doc::Value& board = answers->front();
  const std::string text = json ? doc::ToJson(board, 2) + "\n" : health::BoardText(board);
  std::fputs(text.c_str(), stdout);
  return kOk;
}

int RunRelease(const std::string& name, const std::vector<std::string>& args) {
  Arguments arguments(
      name,
      "Lets go of the driver, so that a GPU can be reset or its MIG mode changed. Devices stay "
      "listed as they are. Ends by `ndp resume`, or after --for.");
  std::string kubelet_socket = kKubeletSocket;
  std::string for_text;
  AddSocketOption(arguments, kubelet_socket);
  arguments.Option("--for", for_text,
                   "resume by itself after this time, such as 120s; without it, at ndp resume");
  if (const auto status = arguments.Parse(args)) return *status;

  ControlRequest request{.command = ControlRequest::Command::kRelease};
  if (!for_text.empty()) {
    const auto time = ParseDuration(for_text);
    if (!time.ok() || *time <= Duration::zero()) {
      fmt::print(stderr, "{}: --for: {}\n", name,
                 time.ok() ? "give a duration above 0" : time.error().message());
      return kUsage;
    }
    request.for_time = *time;
  }
  const auto answers = AskAll(kubelet_socket, request);
  if (!answers.ok()) return Fail(name, answers.error());
  fmt::print("released in {} instance{}: nothing is watched {}\n", answers->size(),
             answers->size() == 1 ? "" : "s",
             request.for_time ? fmt::format("for {}", FormatDuration(*request.for_time))
                              : "until ndp resume");
  return kOk;
}

int RunResume(const std::string& name, const std::vector<std::string>& args) {
  Arguments arguments(name,
                      "Ends an `ndp release`: the driver is opened again and everything scanned.");
  std::string kubelet_socket = kKubeletSocket;
  AddSocketOption(arguments, kubelet_socket);
  if (const auto status = arguments.Parse(args)) return *status;
  const auto answers = AskAll(kubelet_socket, {.command = ControlRequest::Command::kResume});
  if (!answers.ok()) return Fail(name, answers.error());
  fmt::print("resumed in {} instance{}\n", answers->size(), answers->size() == 1 ? "" : "s");
  return kOk;
}

}  // namespace ndp::cmd
