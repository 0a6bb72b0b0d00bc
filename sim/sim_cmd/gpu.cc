#include <vector>

#include "base/text.h"
#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"
#include "sim_control/faults.h"
#include "sim_control/lifecycle.h"

namespace ndp::sim_cmd {
namespace {

struct Options : MachineOptions {
  std::string state;
  std::string order;
  bool remove = false;
  bool add = false;
};

Result<sim_state::GpuState> ParseState(const std::string& text) {
  using sim_state::GpuState;
  if (text == "ok") return GpuState::kOk;
  if (text == "lost") return GpuState::kLost;
  if (text == "reset-required") return GpuState::kResetRequired;
  if (text == "hung") return GpuState::kHung;
  return Error(Code::kInvalidArgument,
               "--state " + text + ": must be ok, lost, reset-required or hung");
}

Status Reorder(sim_control::Simulation& simulation, const std::string& text) {
  std::vector<std::uint32_t> order;
  for (const std::string_view part : Split(text, ',')) {
    NDP_TRY(const std::uint32_t slot, simulation.FindGpu(Trim(part)));
    order.push_back(slot);
  }
  return sim_control::Reorder(simulation, order);
}

Status Run(sim_control::Simulation& simulation, const Options& options) {
  if (!options.order.empty()) return Reorder(simulation, options.order);
  if (options.gpu.empty()) return Error(Code::kInvalidArgument, "--gpu is needed");
  NDP_TRY(const std::uint32_t slot, simulation.FindGpu(options.gpu));
  if (options.remove) return sim_control::RemoveGpu(simulation, slot);
  if (options.add) return sim_control::AddGpu(simulation, slot);
  NDP_TRY(const auto state, ParseState(options.state));
  return sim_control::SetGpuState(simulation, slot, state);
}

}  // namespace

void AddGpu(Command& program) {
  auto command = program.Sub("gpu", "Change a GPU's state, presence or place");
  auto options = std::make_shared<Options>();
  AddDir(command, *options);
  AddGpuOption(command, *options);
  command.ExactlyOne(
      {command.Add("--state", options->state,
                   "ok; lost (off the bus); reset-required; hung (its calls do not return)"),
       command.Flag("--remove", options->remove, "Take it out of the machine"),
       command.Flag("--add", options->add, "Put it back, as after a power cycle"),
       command.Add("--order", options->order, "New enumeration order, e.g. 3,2,1,0")});
  OnMachine(command, options, Run);
}

}  // namespace ndp::sim_cmd
