// reset, clear, driver, boot.
#include "sim_control/lifecycle.h"

#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"

namespace ndp::sim_cmd {
namespace {

using sim_control::Simulation;

struct DriverOptions : MachineOptions {
  std::uint32_t status = 9;
  bool files = false;
  std::string version;
  std::string nvml;
};

Result<std::filesystem::path> Nvml(const DriverOptions& options) {
  if (!options.nvml.empty()) return std::filesystem::path(options.nvml);
  return sim_control::FindNvmlLibrary();
}

void AddNvml(Command& command, DriverOptions& options) {
  command.Add("--nvml", options.nvml,
              "The simulated libnvidia-ml.so.1 (default: the one beside this program)");
}

}  // namespace

void AddReset(Command& program) {
  auto command = program.Sub(
      "reset", "Reset a GPU, as nvidia-smi -r does; refused while a client has it open");
  auto options = std::make_shared<MachineOptions>();
  AddDir(command, *options);
  AddGpuOption(command, *options).Required();
  OnMachine(command, options, [](Simulation& simulation, const MachineOptions& given) {
    auto slot = simulation.FindGpu(given.gpu);
    return slot.ok() ? sim_control::ResetGpu(simulation, *slot) : Status(std::move(slot).error());
  });
}

void AddClear(Command& program) {
  auto command = program.Sub(
      "clear",
      "End the faults of a GPU (or of all) and leave the traces of a reset, whoever has it open. "
      "Removed GPUs, their order, MIG and the driver stay as they are");
  auto options = std::make_shared<MachineOptions>();
  AddDir(command, *options);
  AddGpuOption(command, *options);
  OnMachine(command, options, [](Simulation& simulation, const MachineOptions& given) {
    auto slot = Slot(simulation, given);
    return slot.ok() ? sim_control::Clear(simulation, *slot) : Status(std::move(slot).error());
  });
}

void AddDriver(Command& program) {
  auto command = program.Sub("driver", "Take the driver away, back, or upgrade it");
  command.RequireSub();
  // Before or after the word that follows, as people type it.
  auto options = std::make_shared<DriverOptions>();
  command.Add("--dir", options->dir, "Folder of the machine");

  auto gone = command.Sub("gone", "Unload it: every session dies, nvmlInit fails");
  gone.Add("--dir", options->dir, "Folder of the machine");
  gone.Add("--status", options->status, "What living sessions answer: 9 (default) or 1");
  gone.Flag("--files", options->files, "Remove what the driver package installed, too");
  OnMachine(gone, options, [](Simulation& simulation, const DriverOptions& given) {
    return sim_control::DriverGone(simulation, given.status, given.files);
  });

  auto back = command.Sub("back", "Load it again");
  back.Add("--dir", options->dir, "Folder of the machine");
  AddNvml(back, *options);
  OnMachine(back, options, [](Simulation& simulation, const DriverOptions& given) {
    auto nvml = Nvml(given);
    return nvml.ok() ? sim_control::DriverBack(simulation, *nvml) : Status(std::move(nvml).error());
  });

  auto upgrade = command.Sub("upgrade", "Replace it by another version");
  upgrade.Add("--dir", options->dir, "Folder of the machine");
  AddNvml(upgrade, *options);
  upgrade.Add("--version", options->version, "The new version, e.g. 575.57.08").Required();
  OnMachine(upgrade, options, [](Simulation& simulation, const DriverOptions& given) {
    auto nvml = Nvml(given);
    return nvml.ok() ? sim_control::DriverUpgrade(simulation, given.version, *nvml)
                     : Status(std::move(nvml).error());
  });
}

void AddBoot(Command& program) {
  auto command = program.Sub("boot", "Reboot: a new boot id, sessions dead, counters 0");
  auto options = std::make_shared<MachineOptions>();
  AddDir(command, *options);
  OnMachine(command, options, [](Simulation& simulation, const MachineOptions&) {
    return sim_control::Reboot(simulation);
  });
}

}  // namespace ndp::sim_cmd
