// What most sub-commands share: --dir, and --gpu where they are about one GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim_cmd/command.h"
#include "sim_control/simulation.h"

namespace ndp::sim_cmd {

struct MachineOptions {
  std::string dir;
  std::string gpu;
};

inline void AddDir(Command& command, MachineOptions& options) {
  command.Add("--dir", options.dir, "Folder of the machine").Required();
}

inline Option AddGpuOption(Command& command, MachineOptions& options) {
  return command.Add("--gpu", options.gpu,
                     "The GPU: its number when the machine came up (its minor), its UUID, or its "
                     "PCI bus id");
}

// The slot that --gpu names; nullopt where it was not given.
inline Result<std::optional<std::uint32_t>> Slot(const sim_control::Simulation& simulation,
                                                 const MachineOptions& options) {
  if (options.gpu.empty()) return std::optional<std::uint32_t>();
  NDP_TRY(const std::uint32_t slot, simulation.FindGpu(options.gpu));
  return std::optional(slot);
}

// Opens the machine, then runs `run(Simulation&, const Options&)`, which returns Status. Options
// derive from MachineOptions.
template <typename Options, typename F>
void OnMachine(Command& command, std::shared_ptr<Options> options, F run) {
  command.OnRun([options = std::move(options), run]() -> Status {
    if (options->dir.empty()) return Error(Code::kInvalidArgument, "--dir is required");
    NDP_TRY(auto simulation, sim_control::Simulation::Open(options->dir));
    return run(simulation, *options);
  });
}

}  // namespace ndp::sim_cmd
