#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "base/duration.h"
#include "doc/json.h"
#include "os/process.h"
#include "sim_control/simulation.h"
#include "sim_kubelet/claim.h"
#include "sim_kubelet/command_fields.h"
#include "sim_kubelet/commands.h"
#include "sim_kubelet/control.h"
#include "sim_kubelet/kubelet.h"
#include "sim_kubelet/subcommands.h"

namespace ndp::sim_kubelet {
namespace {

struct Options {
  std::string dir;
  std::string like = "1.37";
  std::string forget_after = "5m";
  std::string dial_limit = "10s";
  std::uint32_t seed = 1;
  bool topology_policy = false;
  bool no_machine = false;
  bool no_stdin = false;
};

// The process ends without unwinding: threads of commands may still block in a plugin's answer.
[[noreturn]] void Leave(int code) {
  std::fflush(stdout);
  _exit(code);
}

Status Run(const Options& options) {
  Kubelet::Options kubelet_options{.folder = std::filesystem::path(options.dir) / "kubelet",
                                   .bookkeeping = {.seed = options.seed},
                                   .topology_policy = options.topology_policy};
  NDP_TRY(kubelet_options.bookkeeping.like, ParseLike(options.like).Context("--like"));
  NDP_TRY(kubelet_options.bookkeeping.grace,
          ParseDuration(options.forget_after).Context("--forget-after"));
  NDP_TRY(kubelet_options.dial_limit, ParseDuration(options.dial_limit).Context("--dial-limit"));

  // Anything else is a mistyped name more often than the folder of a real GPU's test.
  if (!options.no_machine) {
    NDP_TRY(sim_control::Simulation::Find(options.dir).Context("--dir"));
  }
  NDP_TRY(const Claim claim, Claim::Of(options.dir));

  os::BlockSignals({SIGTERM, SIGINT, SIGPIPE});
  NDP_TRY(const auto loop, os::EventLoop::Create());
  EventLog log([](std::string_view line, const doc::Value&) {
    std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
    std::fflush(stdout);
  });
  Kubelet kubelet(*loop, kubelet_options, log);
  Commands commands(loop->poster(), kubelet, [&loop] { loop->Stop(); });
  const auto term = loop->OnSignal(SIGTERM, [&loop] { loop->Stop(); });
  const auto interrupt = loop->OnSignal(SIGINT, [&loop] { loop->Stop(); });
  NDP_TRY(kubelet.Start());
  NDP_TRY(auto control, ServeControl(*loop, kubelet_options.folder / kControlSocket, commands));
  if (!options.no_stdin) ReadStandardInput(commands, log);
  loop->Run();
  control.reset();
  kubelet.Stop(false);
  Leave(0);
}

struct CtlOptions {
  std::string dir;
  std::string command;
};

Status RunCtl(const CtlOptions& options) {
  const auto socket = std::filesystem::path(options.dir) / "kubelet" / kControlSocket;
  doc::Value command = doc::Value::Map();
  if (options.command.starts_with('{')) {
    auto parsed = doc::ParseJson(options.command);
    if (!parsed.ok()) return Error(Code::kInvalidArgument, parsed.error().message());
    command = *std::move(parsed);
  } else {  // a command without fields
    command.Set("command", options.command);
  }
  NDP_TRY(CheckCommand(command));
  auto called = CallControl(socket, doc::ToJson(command));
  if (!called.ok()) {
    return std::move(called).error().WithContext(
        "no kubelet stand-in answers (does ndp-sim kubelet --dir " + options.dir + " run?)");
  }
  const std::string answer = *std::move(called);
  std::printf("%s\n", answer.c_str());
  if (!answer.starts_with("{\"ok\":true")) return Error(Code::kInternal, "the command failed");
  return {};
}

}  // namespace

void AddKubelet(sim_cmd::Command& program) {
  auto command = program.Sub(
      "kubelet",
      "Play the kubelet's device manager on D/kubelet/kubelet.sock; prints one JSON line "
      "for each thing that happens");
  auto options = std::make_shared<Options>();
  command.Footer(CommandHelp() +
                 "\nThey are read from standard input and from D/kubelet/control.sock.");
  command.Add("--dir", options->dir, "Folder of the machine").Required();
  command.Add("--like", options->like, "Whose manners: 1.34 (to 1.36) or 1.37, the default");
  command.Add("--forget-after", options->forget_after,
              "A resource without plugin vanishes after so long (default 5m)");
  command.Add("--dial-limit", options->dial_limit,
              "How long Register goes on dialling the plugin (default 10s)");
  command.Add("--seed", options->seed, "Of the random order in which ids are given");
  command.Flag("--topology-policy", options->topology_policy,
               "With a topology policy: crash where the real one does");
  command.Flag("--no-machine", options->no_machine,
               "The folder need not be a simulated machine: for a plugin with real GPUs");
  command.Flag("--no-stdin", options->no_stdin, "Do not read standard input");
  command.OnRun([options] { return Run(*options); });
}

void AddKubeletCtl(sim_cmd::Command& program) {
  auto command = program.Sub("kubelet-ctl", "Send one command to a running `ndp-sim kubelet`");
  auto options = std::make_shared<CtlOptions>();
  command.Footer(CommandHelp());
  command.Add("--dir", options->dir, "Folder of the machine").Required();
  command.Add("command", options->command, "A JSON object, or a bare word such as status")
      .Required();
  command.OnRun([options] { return RunCtl(*options); });
}

}  // namespace ndp::sim_kubelet
