#include "sim_control/mig.h"

#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"

namespace ndp::sim_cmd {
namespace {

struct Options : MachineOptions {
  std::string mode;
  std::string pending;
  std::optional<std::string> profiles;
  std::vector<std::uint32_t> destroy;
  std::string permission;
};

Result<bool> OnOff(const char* option, const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return Error(Code::kInvalidArgument, std::string(option) + " " + text + ": must be on or off");
}

Status Run(sim_control::Simulation& simulation, const Options& options) {
  NDP_TRY(const std::uint32_t slot, simulation.FindGpu(options.gpu));
  if (options.mode.empty() && options.pending.empty() && !options.profiles &&
      options.destroy.empty() && options.permission.empty()) {
    return Error(Code::kInvalidArgument,
                 "one of --mode, --pending, --profiles, --destroy and --permission is needed");
  }
  if (!options.mode.empty()) {
    NDP_TRY(const bool on, OnOff("--mode", options.mode));
    NDP_TRY(sim_control::SetMigMode(simulation, slot, on));
  }
  if (!options.pending.empty()) {
    NDP_TRY(const bool on, OnOff("--pending", options.pending));
    NDP_TRY(sim_control::SetPendingMigMode(simulation, slot, on));
  }
  if (options.profiles) NDP_TRY(sim_control::Partition(simulation, slot, *options.profiles));
  for (const std::uint32_t gi : options.destroy) {
    NDP_TRY(sim_control::DestroyInstance(simulation, slot, gi));
  }
  if (!options.permission.empty()) {
    NDP_TRY(const bool on, OnOff("--permission", options.permission));
    NDP_TRY(sim_control::SetMigPermission(simulation, slot, on));
  }
  return {};
}

}  // namespace

void AddMig(Command& program) {
  auto command = program.Sub("mig", "MIG mode and partitions of a GPU");
  auto options = std::make_shared<Options>();
  AddDir(command, *options);
  AddGpuOption(command, *options).Required();
  command.Add("--mode", options->mode,
              "on or off, at once; refused while a client has the GPU open");
  command.Add("--pending", options->pending, "on or off, at the next reset");
  command.Add(
      "--profiles", options->profiles,
      "The new layout: names with counts, e.g. 3g.40gb,1g.10gb*4; 1c.2g.20gb*2 for two compute "
      "instances in one GPU instance; - leaves a MIG index empty; \"\" removes all");
  command.Add("--destroy", options->destroy, "Remove the GPU instance of this id");
  command.Add("--permission", options->permission,
              "off: MIG queries answer NO_PERMISSION; on ends it");
  OnMachine(command, options, Run);
}

}  // namespace ndp::sim_cmd
