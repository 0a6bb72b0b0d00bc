#include "sim_kubelet/demo.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "os/file.h"
#include "sim_control/faults.h"
#include "sim_control/lifecycle.h"
#include "sim_control/simulation.h"
#include "sim_kubelet/on_loop.h"
#include "sim_profile/profile.h"

namespace ndp::sim_kubelet {
namespace {

constexpr int kXid = 79;  // "GPU has fallen off the bus"

// A person should not have to wait for the minute that a node gives a faulty GPU.
constexpr std::string_view kConfig = R"(version: v1
health:
  recovery:
    holdOff: 3s
    probeInterval: 1s
)";

template <typename... Args>
void Say(fmt::format_string<Args...> text, Args&&... args) {
  std::fputs((fmt::format(text, std::forward<Args>(args)...) + "\n").c_str(), stdout);
  std::fflush(stdout);
}

template <typename... Args>
void Step(fmt::format_string<Args...> text, Args&&... args) {
  std::fputs("\n", stdout);
  Say("== {}", fmt::format(text, std::forward<Args>(args)...));
}

Result<os::UniqueFd> OpenLog(const std::filesystem::path& file) {
  os::UniqueFd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return ErrnoError(errno, "open " + file.string());
  return fd;
}

double MillisSince(MonoTime begin) {
  return std::chrono::duration<double, std::milli>(SystemClock().Now() - begin).count();
}

std::vector<std::string> Texts(const doc::Value* list) {
  std::vector<std::string> texts;
  if (list != nullptr) {
    for (const doc::Value& item : list->items()) texts.push_back(item.Text());
  }
  return texts;
}

const doc::Value* FindPath(const doc::Value& value, std::initializer_list<std::string_view> path) {
  const doc::Value* at = &value;
  for (const std::string_view key : path) {
    at = at->Find(key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

}  // namespace

Demo::Demo(os::EventLoop& loop, Kubelet& kubelet, Options options)
    : loop_(loop), kubelet_(kubelet), options_(std::move(options)) {}

void Demo::Abort() {
  child_.reset();
  health_.reset();
  const std::lock_guard lock(files_);
  aborted_ = true;
}

Status Demo::Tell() {
  NDP_TRY(StartPlugin());
  NDP_TRY(ShowAllocation());
  NDP_TRY(ShowFault());
  return ShowRecovery();
}

Status Demo::MakeMachine() {
  auto loaded = sim_profile::LoadProfile(options_.profile);
  if (!loaded.ok()) return Error(Code::kInvalidArgument, loaded.error().message());
  const sim_profile::Profile profile = *std::move(loaded);
  if (profile.platform != sim_profile::Platform::kNvml || profile.gpus.empty()) {
    return Error(Code::kInvalidArgument,
                 "--profile " + options_.profile +
                     ": this shows machines whose GPUs NVML lists one by one, and this one (" +
                     profile.description + ") is none; ndp-sim up makes it");
  }
  NDP_TRY(const std::filesystem::path nvml, sim_control::FindNvmlLibrary());
  NDP_TRY(const auto simulation,
          sim_control::Simulation::Up(
              {.dir = options_.dir, .profile = profile, .gpus = 0, .seed = {}, .nvml = nvml}));
  gpus_ = static_cast<int>(simulation.control().gpu_count);
  driver_root_ = simulation.driver_root();
  Step("A machine: {} ({} GPUs), simulated in the folder {}", profile.name, gpus_,
       options_.dir.string());
  return {};
}

Status Demo::WaitForGpus(int allocatable) {
  const Kubelet::Condition wanted{
      .resource = options_.resource, .capacity = gpus_, .allocatable = allocatable, .endpoints = 1};
  const MonoTime limit = SystemClock().Now() + options_.limit;
  // In turns, since nothing comes of a plugin that has ended.
  constexpr Duration kTurn = std::chrono::milliseconds(200);
  while (true) {
    const bool ended = exited_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    Status status = kubelet_.WaitFor(wanted, ended ? Duration(0) : kTurn);
    if (status.ok()) break;
    const bool in_time = SystemClock().Now() < limit;
    if (status.error().code() == Code::kDeadlineExceeded && in_time && !ended) continue;
    std::string why =
        fmt::format("the kubelet does not list {} of {} {}", allocatable, gpus_, options_.resource);
    if (ended) why += ", and the plugin has ended with " + exited_.get().Text();
    return std::move(status).Context(why);
  }
  Say("   the kubelet lists {}: {} ({} allocatable)", options_.resource, gpus_, allocatable);
  return {};
}

Status Demo::StartPlugin() {
  Step("The device plugin starts");
  const std::filesystem::path config = options_.dir / "config.yaml";
  NDP_TRY(OnFiles([&] { return os::AtomicWriteFile(config, kConfig).Context("demo"); }));
  const std::string root = (options_.dir / "root").string();
  const std::vector<std::string> argv = {options_.plugin.string(),
                                         "device-plugin",
                                         "--driver-root-ctr-path",
                                         driver_root_.string(),
                                         "--host-root",
                                         root,
                                         "--kubelet-socket",
                                         (options_.dir / "kubelet" / kKubeletSocket).string(),
                                         "--config-file",
                                         config.string()};
  Say("   $ {}", Join(argv, " "));
  const std::filesystem::path log = LogOf(options_.dir);
  NDP_TRY(const os::UniqueFd log_fd, OnFiles([&] { return OpenLog(log); }));
  Say("   its log, while this runs: {}", log.string());
  const MonoTime begin = SystemClock().Now();
  NDP_TRY(OnLoop(loop_.poster(), [&]() -> Status {
    NDP_TRY(
        child_,
        os::Spawn(
            loop_,
            {.argv = argv, .stdout_fd = log_fd.get(), .stderr_fd = log_fd.get(), .own_group = true},
            [this](os::ExitStatus status) { exit_.set_value(status); }));
    return {};
  }));
  NDP_TRY(WaitForGpus(gpus_));
  Say("   {:.0f} ms after its start. Capacity is what the node has, allocatable what pods may get",
      MillisSince(begin));
  return {};
}

Status Demo::CheckAnswer(const doc::Value& answer) {
  const std::vector<std::string> devices = Texts(answer.Find("devices"));
  const doc::Value* visible = FindPath(answer, {"response", "envs", "NVIDIA_VISIBLE_DEVICES"});
  const doc::Value* cdi = FindPath(answer, {"response", "cdiDevices"});
  if (visible == nullptr && Texts(cdi).empty()) {
    return Error(Code::kInternal,
                 "the answer names no GPU: neither NVIDIA_VISIBLE_DEVICES nor CDI");
  }
  if (visible == nullptr) return {};
  std::vector<std::string> named;
  const std::string text = visible->Text();
  for (const std::string_view id : Split(text, ',')) named.emplace_back(id);
  std::vector<std::string> wanted = devices;
  std::ranges::sort(named);
  std::ranges::sort(wanted);
  if (named != wanted) {
    return Error(Code::kInternal,
                 fmt::format("NVIDIA_VISIBLE_DEVICES is {}, but the pod was given {}", text,
                             Join(wanted, ",")));
  }
  return {};
}

Status Demo::ShowAllocation() {
  const int count = std::min(2, gpus_);
  Step(
      "A pod asks for {} GPU{}: the kubelet asks the plugin which go well together, and for what "
      "the container needs",
      count, count == 1 ? "" : "s");
  const MonoTime begin = SystemClock().Now();
  NDP_TRY(const doc::Value answer, kubelet_.Admit({.pod = "training",
                                                   .container = "main",
                                                   .resource = options_.resource,
                                                   .count = count,
                                                   .init = false,
                                                   .numa = {}}));
  Say("   answered in {:.1f} ms; its container gets", MillisSince(begin));
  held_ = Texts(answer.Find("devices"));
  if (const doc::Value* envs = FindPath(answer, {"response", "envs"})) {
    for (const auto& entry : envs->entries())
      Say("     env    {}={}", entry.key, entry.value.Text());
  }
  if (const doc::Value* devices = FindPath(answer, {"response", "devices"})) {
    for (const doc::Value& device : devices->items()) {
      Say("     device {} ({})", device.TextAt("hostPath"), device.TextAt("permissions"));
    }
  }
  if (const doc::Value* mounts = FindPath(answer, {"response", "mounts"})) {
    for (const doc::Value& mount : mounts->items()) {
      Say("     mount  {} at {}", mount.TextAt("hostPath"), mount.TextAt("containerPath"));
    }
  }
  for (const std::string& name : Texts(FindPath(answer, {"response", "cdiDevices"}))) {
    Say("     CDI    {}", name);
  }
  return CheckAnswer(answer);
}

Result<std::string> Demo::Victim() const {
  const doc::Value state = kubelet_.Describe();
  const doc::Value* devices = FindPath(state, {"resources", options_.resource, "devices"});
  std::string victim;
  if (devices != nullptr) {
    for (const doc::Value& device : devices->items()) {
      const std::string id = device.TextAt("id");
      if (victim.empty() || std::ranges::find(held_, id) == held_.end()) victim = id;
    }
  }
  if (victim.empty()) return Error(Code::kNotFound, "no GPU is listed");
  return victim;
}

Status Demo::ShowFault() {
  NDP_TRY(victim_, Victim());
  const bool held = std::ranges::find(held_, victim_) != held_.end();
  Step("A GPU {} fails: the driver reports XID {}, \"GPU has fallen off the bus\"",
       held ? "that the pod holds" : "that no pod holds", kXid);
  const MonoTime begin = SystemClock().Now();
  NDP_TRY(OnFiles([&]() -> Status {
    NDP_TRY(auto simulation, sim_control::Simulation::Open(options_.dir));
    sim_state::Event event{.type = 0x8,
                           .data = kXid,
                           .gi_id = sim_state::kNoInstance,
                           .ci_id = sim_state::kNoInstance};
    NDP_TRY(event.gpu, simulation.FindGpu(victim_));
    return sim_control::SendEvents(simulation, {event}, 1);
  }));
  NDP_TRY(WaitForGpus(gpus_ - 1));
  Say("   {:.1f} ms after the fault; no new pod gets this GPU, and running pods are left alone",
      MillisSince(begin));
  return ShowReason();
}

// By the command that a person on call would use.
Status Demo::ShowReason() {
  const std::vector<std::string> argv = {options_.plugin.string(), "health", "--kubelet-socket",
                                         (options_.dir / "kubelet" / kKubeletSocket).string()};
  Say("   why:");
  Say("   $ {}", Join(argv, " "));
  const std::filesystem::path file = options_.dir / "health.txt";
  NDP_TRY(const os::UniqueFd output, OnFiles([&] { return OpenLog(file); }));
  auto ended = std::make_shared<std::promise<os::ExitStatus>>();
  std::future<os::ExitStatus> status = ended->get_future();
  NDP_TRY(OnLoop(loop_.poster(), [&]() -> Status {
    NDP_TRY(
        health_,
        os::Spawn(
            loop_,
            {.argv = argv, .stdout_fd = output.get(), .stderr_fd = output.get(), .own_group = true},
            [ended](os::ExitStatus exit) { ended->set_value(exit); }));
    return {};
  }));
  const bool in_time = status.wait_for(options_.limit) == std::future_status::ready;
  OnLoop(loop_.poster(), [this] {
    health_.reset();
    return true;
  });
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in_time || !status.get().ok()) {
    return Error(Code::kInternal, "ndp health does not say why the GPU is Unhealthy: " + text);
  }
  bool shown = false;
  for (const std::string_view line : Split(text, '\n')) {
    const bool detail = line.starts_with("      ");  // of the device above
    shown = detail ? shown : line.contains(victim_);
    if (shown && !line.empty()) Say("     {}", line);
  }
  return {};
}

Status Demo::ShowRecovery() {
  Step("The GPU is reset, as by nvidia-smi --gpu-reset");
  const MonoTime begin = SystemClock().Now();
  NDP_TRY(OnFiles([&]() -> Status {
    NDP_TRY(auto simulation, sim_control::Simulation::Open(options_.dir));
    NDP_TRY(const std::uint32_t slot, simulation.FindGpu(victim_));
    return sim_control::Clear(simulation, slot);
  }));
  Say("   the plugin looks at it for a while before it trusts it again (here 3 s, by default 60 "
      "s)");
  NDP_TRY(WaitForGpus(gpus_));
  Say("   {:.1f} s after the reset", MillisSince(begin) / 1000);
  return {};
}

Status Demo::StopPlugin() {
  Step("The plugin is told to end");
  const MonoTime begin = SystemClock().Now();
  OnLoop(loop_.poster(), [this] {
    if (child_) child_->Signal(SIGTERM);
    return true;
  });
  NDP_TRY(kubelet_.WaitFor(
      {.resource = options_.resource, .capacity = std::nullopt, .allocatable = 0, .endpoints = 0},
      options_.limit));
  if (exited_.wait_for(options_.limit) != std::future_status::ready) {
    return Error(Code::kDeadlineExceeded, "the plugin does not end after SIGTERM");
  }
  if (!exited_.get().ok())
    return Error(Code::kInternal, "the plugin ended with " + exited_.get().Text());
  Say("   it ended after {:.0f} ms; the kubelet hands out no GPU any more", MillisSince(begin));
  return {};
}

}  // namespace ndp::sim_kubelet
