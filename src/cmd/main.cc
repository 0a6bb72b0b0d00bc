// Dispatches on the name the program was called by, or on its first argument.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "cmd/command.h"
#include "os/process.h"

namespace ndp::cmd {
namespace {

constexpr Command kCommands[] = {
    {"device-plugin", "nvidia-device-plugin", "offer this node's GPUs to the kubelet",
     RunDevicePlugin, true},
    {"health", "", "show verdicts and reasons; clear a GPU by hand", RunHealth},
    {"release", "", "let go of the driver for a reset or a MIG change", RunRelease},
    {"resume", "", "end a release", RunResume},
    {"examine", "", "look at one GPU as health checks do, in a session of its own", RunExamine},
    {"inventory", "", "print what the driver says of this node, as JSON", RunInventory},
    {"cdi", "", "write, list or check Container Device Interface files", RunCdi},
};

// Programs of NVIDIA's plugin that are not there yet, by either name.
constexpr std::pair<std::string_view, std::string_view> kNotYet[] = {
    {"feature-discovery", "gpu-feature-discovery"},
    {"mps-control-daemon", "mps-control-daemon"},
    {"config-manager", "config-manager"},
};

sigset_t mask_at_start;

// A pod that is deleted while it starts gets its SIGTERM in the first milliseconds. By default that
// would end the program as if it had failed, and as a container's first process it would not get
// it at all. So the signals wait, before anything else of the program runs, for the loop that reads
// them; every later thread inherits the mask.
[[gnu::constructor(101)]] void HoldSignals() {
  mask_at_start = os::BlockSignals({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE});
}

int Run(const Command& command, const std::string& name, const std::vector<std::string>& args) {
  if (!command.reads_signals) os::RestoreSignals(mask_at_start);
  return command.run(name, args);
}

std::string Usage() {
  std::string text = "usage: ndp COMMAND [OPTION...]\n\ncommands:\n";
  for (const Command& command : kCommands)
    text += fmt::format("  {:20} {}\n", command.name, command.summary);
  return text +
         "\n  ndp COMMAND --help   the command's options\n"
         "  ndp --version        version and commit\n";
}

int Main(std::vector<std::string> args) {
  const std::string called = std::filesystem::path(args[0]).filename().string();
  args.erase(args.begin());
  for (const Command& command : kCommands) {
    if (!command.alias.empty() && called == command.alias) return Run(command, called, args);
  }
  const std::string first = args.empty() ? "" : args[0];
  for (const auto& [name, alias] : kNotYet) {
    if (called != alias && first != name) continue;
    fmt::print(stderr, "{}: this version does not have it yet: keep NVIDIA's program for it\n",
               called == alias ? called : fmt::format("ndp {}", name));
    return kFailed;
  }
  if (first == "--version" || first == "-v" || first == "version") {
    std::puts(VersionText().c_str());
    return kOk;
  }
  if (first == "--help" || first == "-h" || first == "help") {
    std::fputs(Usage().c_str(), stdout);
    return kOk;
  }
  for (const Command& command : kCommands) {
    if (first == command.name) {
      args.erase(args.begin());
      return Run(command, fmt::format("ndp {}", command.name), args);
    }
  }
  std::fputs(first.empty() ? "ndp: no command given\n"
                           : fmt::format("ndp: unknown command \"{}\"\n", first).c_str(),
             stderr);
  std::fputs(Usage().c_str(), stderr);
  return kUsage;
}

}  // namespace

std::span<const Command> Commands() { return kCommands; }

}  // namespace ndp::cmd

int main(int argc, char** argv) { return ndp::cmd::Main({argv, argv + argc}); }
