#include "sim_kubelet/commands.h"

#include <optional>
#include <thread>

#include "doc/json.h"
#include "sim_kubelet/command_fields.h"
#include "sim_kubelet/on_loop.h"

namespace ndp::sim_kubelet {

namespace {

Result<doc::Value> Done(Status status) {
  if (!status.ok()) return std::move(status).error();
  return doc::Value::Map();
}

Result<doc::Value> Wait(const Kubelet& kubelet, const Fields& fields) {
  return Done(kubelet.WaitFor({.resource = fields.Text("resource"),
                               .capacity = fields.MaybeNumber("capacity"),
                               .allocatable = fields.MaybeNumber("allocatable"),
                               .endpoints = fields.MaybeNumber("endpoints")},
                              std::chrono::milliseconds(fields.NumberOr("timeout_ms", 10'000))));
}

Result<doc::Value> Allocate(Kubelet& kubelet, const Fields& fields) {
  ContainerRequest request{.pod = fields.TextOr("pod", "pod"),
                           .container = fields.TextOr("container", "c"),
                           .resource = fields.Text("resource"),
                           .count = fields.Number("count"),
                           .init = fields.Flag("init"),
                           .numa = {}};
  for (const int node : fields.Numbers("numa")) request.numa.insert(node);
  return kubelet.Admit(request);
}

Result<doc::Value> Preferred(Kubelet& kubelet, const Fields& fields) {
  auto available = fields.Texts("available");
  return kubelet.CallPreferred(
      fields.Text("resource"),
      available.empty() ? std::nullopt : std::optional(std::move(available)),
      fields.Texts("must_include"), fields.Number("count"));
}

Result<doc::Value> Refuse(Kubelet& kubelet, const Fields& fields) {
  RegisterFault fault;
  fault.refuse = fields.NumberOr("count", 1);
  fault.message = fields.TextOr("message", fault.message);
  kubelet.SetRegisterFault(fault);
  return doc::Value::Map();
}

Result<doc::Value> Delay(Kubelet& kubelet, const Fields& fields) {
  RegisterFault fault;
  fault.delay = fields.NumberOr("count", 1);
  fault.by = std::chrono::milliseconds(fields.Number("ms"));
  kubelet.SetRegisterFault(fault);
  return doc::Value::Map();
}

}  // namespace

Commands::Commands(os::EventLoop::Poster loop, Kubelet& kubelet, std::function<void()> quit)
    : loop_(std::move(loop)), kubelet_(kubelet), quit_(std::move(quit)) {}

std::string Commands::Run(std::string_view line) {
  Result<doc::Value> command = doc::ParseJson(line);
  Result<doc::Value> result =
      command.ok() ? Dispatch(*command) : Result<doc::Value>(std::move(command).error());
  doc::Value answer = doc::Value::Map();
  answer.Set("ok", result.ok());
  if (result.ok()) {
    for (auto& entry : result->entries()) answer.Set(entry.key, std::move(entry.value));
  } else {
    answer.Set("error", result.error().message());
  }
  return doc::ToJson(answer);
}

Result<doc::Value> Commands::Dispatch(const doc::Value& command) {
  NDP_TRY(CheckCommand(command));
  const Fields fields(command);
  const std::string name = fields.Text("command");
  const std::string resource = fields.Text("resource");
  const std::string stream = fields.Text("stream");
  if (name == "status") return kubelet_.Describe();
  if (name == "wait") return Wait(kubelet_, fields);
  if (name == "allocate") return Allocate(kubelet_, fields);
  if (name == "preferred") return Preferred(kubelet_, fields);
  if (name == "raw-allocate") return kubelet_.CallAllocate(resource, fields.Texts("devices"));
  if (name == "refuse") return Refuse(kubelet_, fields);
  if (name == "delay") return Delay(kubelet_, fields);
  if (name == "release") {
    return Done(kubelet_.ReleasePod(fields.Text("pod"), fields.Flag("keep_checkpoint")));
  }
  if (name == "drop-stream") return Done(kubelet_.DropStream(resource, fields.Text("endpoint")));
  if (name == "open-stream") return Done(OpenStream(resource, stream));
  if (name == "close-stream") return Done(streams_.Close(stream));
  if (name == "streams") {
    doc::Value answer = doc::Value::Map();
    answer.Set("streams", streams_.Describe());
    return answer;
  }
  if (name == "stop") return Done(Stop(command));
  if (name == "start") return Start(command, false);
  if (name == "restart") return Start(command, true);
  NDP_CHECK(name == "quit");
  quit_();
  return doc::Value::Map();
}

Status Commands::OpenStream(const std::string& resource, const std::string& stream) {
  NDP_TRY(const auto socket, kubelet_.SocketOf(resource));
  return streams_.Open(stream, socket);
}

Status Commands::Stop(const doc::Value& command) {
  const bool leave_socket = Fields(command).Flag("leave_socket");
  return OnLoop(loop_, [this, leave_socket]() -> Status {
    kubelet_.Stop(leave_socket);
    return {};
  });
}

Result<doc::Value> Commands::Start(const doc::Value& command, bool stop_first) {
  const Fields fields(command);
  const int down_ms = fields.Number("down_ms");
  if (stop_first) NDP_TRY(Stop(command));
  if (fields.Flag("lose_checkpoint")) kubelet_.RemoveCheckpoint();
  // A blocked command blocks nobody else: the loop goes on.
  if (down_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(down_ms));
  return Done(OnLoop(loop_, [this] { return kubelet_.Start(); }));
}

}  // namespace ndp::sim_kubelet
