#include "sim_kubelet/commands.h"

#include <optional>
#include <thread>

#include "base/text.h"
#include "doc/json.h"
#include "sim_kubelet/on_loop.h"

namespace ndp::sim_kubelet {

const char* const kCommandHelp =
    R"(Commands, one JSON object a line ("command" and its fields; * = needed):
  status                                      resources, devices, endpoints, pods
  wait        resource*, capacity, allocatable, endpoints, timeout_ms (10000)
  allocate    resource*, count*, pod ("pod"), container ("c"), init (false), numa ([])
                                              admit a container as the kubelet does
  release     pod*                            the pod is gone
  preferred   resource*, count*, available ([]: all healthy), must_include ([])
  raw-allocate resource*, devices*            Allocate for any ids, past all bookkeeping
  drop-stream resource*, endpoint             end a ListAndWatch stream
  open-stream   resource*, stream*            one more stream, on a connection of its own
  close-stream  stream*
  streams                                     what each of those has seen
  refuse      count (1), message              the next Register calls fail
  delay       ms*, count (1)                  the next Register calls wait first
  stop        leave_socket (false)            leave_socket: as after kill -9
  start
  restart     down_ms (0), leave_socket (false), lose_checkpoint (false)
  quit)";

namespace {

// The fields of one command; each error names its field.
class Fields {
 public:
  explicit Fields(const doc::Value& command) : command_(command) {}

  Result<std::string> Text(std::string_view key) const {
    const doc::Value* value = command_.Find(key);
    if (value == nullptr || !value->AsString()) return Wrong(key, "a text");
    return *value->AsString();
  }
  std::string TextOr(std::string_view key, std::string fallback) const {
    return Text(key).value_or(std::move(fallback));
  }
  Result<int> Number(std::string_view key) const {
    const doc::Value* value = command_.Find(key);
    if (value == nullptr || !value->AsInt() || *value->AsInt() < 0 ||
        *value->AsInt() > 1'000'000'000) {
      return Wrong(key, "a number");
    }
    return static_cast<int>(*value->AsInt());
  }
  Result<int> NumberOr(std::string_view key, int fallback) const {
    return command_.Find(key) == nullptr ? Result<int>(fallback) : Number(key);
  }
  Result<std::optional<int>> MaybeNumber(std::string_view key) const {
    if (command_.Find(key) == nullptr) return std::optional<int>();
    NDP_TRY(const int number, Number(key));
    return std::optional<int>(number);
  }
  bool Flag(std::string_view key) const {
    const doc::Value* value = command_.Find(key);
    return value != nullptr && value->AsBool().value_or(false);
  }
  std::vector<std::string> Texts(std::string_view key) const {
    std::vector<std::string> texts;
    if (const doc::Value* list = command_.Find(key)) {
      for (const doc::Value& item : list->items()) texts.push_back(item.Text());
    }
    return texts;
  }

 private:
  static Error Wrong(std::string_view key, std::string_view what) {
    return {Code::kInvalidArgument, "'" + std::string(key) + "' must be " + std::string(what)};
  }
  const doc::Value& command_;
};

Result<doc::Value> Done(Status status) {
  if (!status.ok()) return std::move(status).error();
  return doc::Value::Map();
}

Result<doc::Value> Wait(const Kubelet& kubelet, const Fields& fields) {
  Kubelet::Condition condition;
  NDP_TRY(condition.resource, fields.Text("resource"));
  NDP_TRY(condition.capacity, fields.MaybeNumber("capacity"));
  NDP_TRY(condition.allocatable, fields.MaybeNumber("allocatable"));
  NDP_TRY(condition.endpoints, fields.MaybeNumber("endpoints"));
  NDP_TRY(const int limit, fields.NumberOr("timeout_ms", 10'000));
  return Done(kubelet.WaitFor(condition, std::chrono::milliseconds(limit)));
}

Result<doc::Value> Allocate(Kubelet& kubelet, const Fields& fields) {
  ContainerRequest request{.pod = fields.TextOr("pod", "pod"),
                           .container = fields.TextOr("container", "c"),
                           .resource = {},
                           .count = 0,
                           .init = fields.Flag("init"),
                           .numa = {}};
  NDP_TRY(request.resource, fields.Text("resource"));
  NDP_TRY(request.count, fields.Number("count"));
  for (const std::string& node : fields.Texts("numa")) {
    if (const auto number = ParseSigned(node)) request.numa.insert(*number);
  }
  return kubelet.Admit(request);
}

Result<doc::Value> Preferred(Kubelet& kubelet, const Fields& fields) {
  NDP_TRY(const std::string resource, fields.Text("resource"));
  NDP_TRY(const int count, fields.Number("count"));
  auto available = fields.Texts("available");
  return kubelet.CallPreferred(
      resource, available.empty() ? std::nullopt : std::optional(std::move(available)),
      fields.Texts("must_include"), count);
}

Result<doc::Value> RawAllocate(Kubelet& kubelet, const Fields& fields) {
  NDP_TRY(const std::string resource, fields.Text("resource"));
  return kubelet.CallAllocate(resource, fields.Texts("devices"));
}

Result<doc::Value> Refuse(Kubelet& kubelet, const Fields& fields) {
  RegisterFault fault;
  NDP_TRY(fault.refuse, fields.NumberOr("count", 1));
  fault.message = fields.TextOr("message", fault.message);
  kubelet.SetRegisterFault(fault);
  return doc::Value::Map();
}

Result<doc::Value> Delay(Kubelet& kubelet, const Fields& fields) {
  RegisterFault fault;
  NDP_TRY(const int ms, fields.Number("ms"));
  NDP_TRY(fault.delay, fields.NumberOr("count", 1));
  fault.by = std::chrono::milliseconds(ms);
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
  const Fields fields(command);
  NDP_TRY(const std::string name, fields.Text("command"));
  if (name == "status") return kubelet_.Describe();
  if (name == "wait") return Wait(kubelet_, fields);
  if (name == "allocate") return Allocate(kubelet_, fields);
  if (name == "preferred") return Preferred(kubelet_, fields);
  if (name == "raw-allocate") return RawAllocate(kubelet_, fields);
  if (name == "refuse") return Refuse(kubelet_, fields);
  if (name == "delay") return Delay(kubelet_, fields);
  if (name == "release") {
    NDP_TRY(const std::string pod, fields.Text("pod"));
    return Done(kubelet_.ReleasePod(pod));
  }
  if (name == "drop-stream") {
    NDP_TRY(const std::string resource, fields.Text("resource"));
    return Done(kubelet_.DropStream(resource, fields.TextOr("endpoint", "")));
  }
  if (name == "open-stream")
    return Done(OpenStream(fields.Text("resource"), fields.Text("stream")));
  if (name == "close-stream") {
    NDP_TRY(const std::string stream, fields.Text("stream"));
    return Done(streams_.Close(stream));
  }
  if (name == "streams") {
    doc::Value answer = doc::Value::Map();
    answer.Set("streams", streams_.Describe());
    return answer;
  }
  if (name == "stop") return Done(Stop(command));
  if (name == "start") return Start(command, false);
  if (name == "restart") return Start(command, true);
  if (name == "quit") {
    quit_();
    return doc::Value::Map();
  }
  return Error(Code::kInvalidArgument, "unknown command '" + name + "'\n" + kCommandHelp);
}

Status Commands::OpenStream(const Result<std::string>& resource,
                            const Result<std::string>& stream) {
  if (!resource.ok()) return resource.error();
  if (!stream.ok()) return stream.error();
  NDP_TRY(const auto socket, kubelet_.SocketOf(*resource));
  return streams_.Open(*stream, socket);
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
  NDP_TRY(const int down_ms, fields.NumberOr("down_ms", 0));
  if (stop_first) NDP_TRY(Stop(command));
  if (fields.Flag("lose_checkpoint")) kubelet_.RemoveCheckpoint();
  // A blocked command blocks nobody else: the loop goes on.
  if (down_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(down_ms));
  return Done(OnLoop(loop_, [this] { return kubelet_.Start(); }));
}

}  // namespace ndp::sim_kubelet
