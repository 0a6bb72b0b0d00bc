// set: what health checks read.
#include <array>

#include "base/text.h"
#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"

namespace ndp::sim_cmd {
namespace {

using sim_state::Control;
using sim_state::Gpu;

struct Options : MachineOptions {
  std::optional<int> recovery_action;
  std::optional<int> temperature;
  std::vector<std::string> thresholds;
  std::optional<int> remap_pending;
  std::optional<int> remap_failure;
  std::optional<int> remap_correctable;
  std::optional<int> remap_uncorrectable;
  bool no_remap = false;
  std::optional<int> retired_pending;
  std::optional<std::uint64_t> ecc_corrected;
  std::optional<std::uint64_t> ecc_uncorrected;
  std::optional<std::uint32_t> pcie_replay;
  std::string compute_mode;
  std::string fabric;
  std::optional<std::uint32_t> fabric_health;
  std::optional<std::uint64_t> event_types;
  std::optional<std::uint64_t> memory_used_mib;
  std::optional<std::uint32_t> power;
  std::optional<std::uint32_t> utilization;
  std::vector<std::string> processes;
  bool no_processes = false;
};

struct Name {
  std::string_view name;
  std::uint32_t value;
};
constexpr Name kComputeModes[] = {{"default", 0}, {"prohibited", 2}, {"exclusive", 3}};
constexpr Name kFabricStates[] = {
    {"not-supported", 0}, {"not-started", 1}, {"in-progress", 2}, {"completed", 3}};

template <std::size_t N>
Result<std::uint32_t> Lookup(const char* option, const Name (&names)[N], const std::string& text) {
  std::vector<std::string> known;
  for (const Name& entry : names) {
    if (entry.name == text) return entry.value;
    known.emplace_back(entry.name);
  }
  return Error(Code::kInvalidArgument,
               std::string(option) + " " + text + ": must be one of " + Join(known, ", "));
}

Status SetThreshold(const std::string& text, Gpu& gpu) {
  constexpr Name kKinds[] = {{"shutdown", 0}, {"slowdown", 1}, {"memory-max", 2}, {"gpu-max", 3}};
  const auto equals = text.find('=');
  const auto value =
      equals == std::string::npos ? std::nullopt : ParseSigned(text.substr(equals + 1));
  if (!value) {
    return Error(Code::kInvalidArgument,
                 "--threshold " + text + ": must be <kind>=<degrees>, e.g. shutdown=92");
  }
  NDP_TRY(const std::uint32_t kind, Lookup("--threshold", kKinds, text.substr(0, equals)));
  gpu.health.thresholds[kind] = static_cast<std::int32_t>(*value);
  return {};
}

// "4242:1024", "4242:1024:2:0": pid, MiB, and perhaps GPU and compute instance.
Status SetProcesses(const std::vector<std::string>& texts, Gpu& gpu) {
  if (texts.size() > sim_state::kMaxProcesses) {
    return Error(Code::kInvalidArgument, "--process: at most 8");
  }
  for (auto& process : gpu.processes) process = {};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::uint64_t> numbers;
    for (const auto part : Split(texts[i], ':')) {
      if (const auto number = ParseUnsigned(part)) numbers.push_back(*number);
    }
    if (numbers.size() != 2 && numbers.size() != 4) {
      return Error(Code::kInvalidArgument,
                   "--process " + texts[i] + ": must be <pid>:<MiB> or <pid>:<MiB>:<gi>:<ci>");
    }
    auto& process = gpu.processes[i];
    process.pid = static_cast<std::uint32_t>(numbers[0]);
    process.memory = numbers[1] * 1024 * 1024;
    if (numbers.size() == 4) {
      process.gi_id = static_cast<std::uint32_t>(numbers[2]);
      process.ci_id = static_cast<std::uint32_t>(numbers[3]);
    }
  }
  return {};
}

template <typename T, typename V>
void Assign(const std::optional<V>& given, T& field) {
  if (given) field = static_cast<T>(*given);
}

Status Apply(const Options& options, Gpu& gpu) {
  auto& health = gpu.health;
  Assign(options.recovery_action, health.recovery_action);
  Assign(options.temperature, health.temperature);
  Assign(options.remap_pending, health.remap_pending);
  Assign(options.remap_failure, health.remap_failure);
  Assign(options.remap_correctable, health.remap_correctable);
  Assign(options.remap_uncorrectable, health.remap_uncorrectable);
  if (options.no_remap) health.remap_supported = 0;
  Assign(options.retired_pending, health.retired_pending);
  for (auto& counter : health.ecc[0]) Assign(options.ecc_corrected, counter);
  for (auto& counter : health.ecc[1]) Assign(options.ecc_uncorrected, counter);
  Assign(options.pcie_replay, health.pcie_replay);
  Assign(options.event_types, gpu.event_types);
  Assign(options.power, health.power_milliwatt);
  Assign(options.utilization, health.gpu_utilization);
  Assign(options.fabric_health, gpu.fabric.health_mask);
  if (options.memory_used_mib) {
    const std::uint64_t bytes = *options.memory_used_mib * 1024 * 1024;
    if (bytes > gpu.memory_total - gpu.memory_reserved) {
      return Error(Code::kInvalidArgument, "--memory-used: more than the GPU has");
    }
    gpu.memory_used = bytes;
  }
  if (!options.compute_mode.empty()) {
    NDP_TRY(gpu.compute_mode, Lookup("--compute-mode", kComputeModes, options.compute_mode));
  }
  if (!options.fabric.empty()) {
    NDP_TRY(gpu.fabric.state, Lookup("--fabric", kFabricStates, options.fabric));
  }
  for (const std::string& threshold : options.thresholds) NDP_TRY(SetThreshold(threshold, gpu));
  if (options.no_processes || !options.processes.empty()) {
    NDP_TRY(SetProcesses(options.processes, gpu));
  }
  return {};
}

// Nothing to set is a mistake in a script, not a wish.
bool Empty(const Options& o) {
  return !o.recovery_action && !o.temperature && o.thresholds.empty() && !o.remap_pending &&
         !o.remap_failure && !o.remap_correctable && !o.remap_uncorrectable && !o.no_remap &&
         !o.retired_pending && !o.ecc_corrected && !o.ecc_uncorrected && !o.pcie_replay &&
         o.compute_mode.empty() && o.fabric.empty() && !o.fabric_health && !o.event_types &&
         !o.memory_used_mib && !o.power && !o.utilization && o.processes.empty() && !o.no_processes;
}

Status Run(sim_control::Simulation& simulation, const Options& options) {
  if (Empty(options)) {
    return Error(Code::kInvalidArgument,
                 "nothing to set: give --recovery-action, --temperature or "
                 "another value (--help shows them)");
  }
  NDP_TRY(const std::uint32_t slot, simulation.FindGpu(options.gpu));
  return simulation.machine().Write([&](Control& control) -> Status {
    Gpu changed = control.gpus[slot];
    NDP_TRY(Apply(options, changed));
    control.gpus[slot] = changed;
    return {};
  });
}

}  // namespace

void AddSet(Command& program) {
  auto command = program.Sub("set", "Set what health checks read of a GPU");
  auto given = std::make_shared<Options>();
  Options& o = *given;
  AddDir(command, o);
  AddGpuOption(command, o).Required();
  command.Add("--recovery-action", o.recovery_action,
              "Field 230: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, 5 IMEX "
              "domain, 6 bus reset, 7 system reboot; -1: the driver has no such field");
  command.Add("--temperature", o.temperature, "Degrees; -1: not supported");
  command.Add("--threshold", o.thresholds,
              "<kind>=<degrees>, kinds shutdown, slowdown, memory-max, gpu-max; -1: not "
              "supported");
  command.Add("--remap-pending", o.remap_pending, "Row remapping pending: 0 or 1").Range(0, 1);
  command.Add("--remap-failure", o.remap_failure, "Row remapping failed: 0 or 1").Range(0, 1);
  command.Add("--remap-correctable", o.remap_correctable, "Rows remapped");
  command.Add("--remap-uncorrectable", o.remap_uncorrectable, "Rows remapped");
  command.Flag("--no-remap", o.no_remap, "Row remapping is not supported");
  command.Add("--retired-pending", o.retired_pending,
              "Page retirement pending: 0 or 1; -1: not supported");
  command.Add("--ecc-corrected", o.ecc_corrected, "Errors, volatile and aggregate");
  command.Add("--ecc-uncorrected", o.ecc_uncorrected, "Errors, volatile and aggregate");
  command.Add("--pcie-replay", o.pcie_replay, "PCIe replay counter");
  command.Add("--compute-mode", o.compute_mode, "default, prohibited or exclusive");
  command.Add("--fabric", o.fabric, "not-supported, not-started, in-progress or completed");
  command.Add("--fabric-health", o.fabric_health, "Health mask of the fabric; 0 is well");
  command.Add("--event-types", o.event_types,
              "Bits of the supported event types; 0: events are not supported");
  command.Add("--memory-used", o.memory_used_mib, "MiB");
  command.Add("--power", o.power, "Milliwatt");
  command.Add("--utilization", o.utilization, "Percent").Range(0, 100);
  command.Add("--process", o.processes,
              "A running process, <pid>:<MiB>[:<gi>:<ci>]; replaces those there were");
  command.Flag("--no-process", o.no_processes, "Nothing runs");
  OnMachine(command, given, Run);
}

}  // namespace ndp::sim_cmd
