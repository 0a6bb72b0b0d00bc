// status: the machine as it is.
#include <fmt/format.h>

#include "doc/json.h"
#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"
#include "sim_root/device_nodes.h"
#include "sim_state/mig_model.h"
#include "sim_state/sessions.h"

namespace ndp::sim_cmd {
namespace {

using sim_state::Control;
using sim_state::Gpu;

struct Options : MachineOptions {
  bool json = false;
};

const char* StateName(const Gpu& gpu) {
  if (gpu.present == 0) return "removed";
  switch (gpu.state) {
    case sim_state::GpuState::kOk:
      return "ok";
    case sim_state::GpuState::kLost:
      return "lost";
    case sim_state::GpuState::kResetRequired:
      return "reset-required";
    case sim_state::GpuState::kHung:
      return "hung";
  }
  return "unknown";
}

// "0:1g.10gb MIG-…" per MIG device.
template <typename F>
void ForEachMig(const Gpu& gpu, F&& visit) {
  if (gpu.mig_model < 0) return;
  const auto& model = sim_state::MigModels()[static_cast<std::size_t>(gpu.mig_model)];
  for (unsigned i = 0; i < sim_state::kMaxInstances; ++i) {
    const auto& device = gpu.mig.devices[i];
    if (device.used == 0) continue;
    for (const auto& instance : gpu.mig.instances) {
      if (instance.used == 0 || instance.id != device.gi_id) continue;
      const auto* profile = sim_state::FindProfile(model, instance.profile);
      std::string name = profile == nullptr ? "?" : std::string(profile->name);
      if (profile != nullptr && device.size != profile->slices) {
        name = fmt::format("{}c.{}", device.size, name);
      }
      visit(i, device, name);
    }
  }
}

doc::Value GpuJson(const Gpu& gpu, unsigned slot, int index) {
  doc::Value mig = doc::Value::List();
  ForEachMig(gpu, [&](unsigned i, const sim_state::MigDevice& device, const std::string& name) {
    doc::Value entry = doc::Value::Map();
    entry.Set("index", i);
    entry.Set("uuid", device.uuid);
    entry.Set("profile", name);
    entry.Set("gi", device.gi_id);
    entry.Set("ci", device.ci_id);
    mig.Append(std::move(entry));
  });
  doc::Value out = doc::Value::Map();
  out.Set("gpu", slot);
  out.Set("index", index);
  out.Set("uuid", gpu.uuid);
  out.Set("name", gpu.name);
  out.Set("minor", gpu.minor);
  out.Set("pci", sim_root::SysfsPciId(gpu.pci));
  out.Set("memoryMiB", gpu.memory_total / 1024 / 1024);
  out.Set("numa", gpu.numa_node);
  out.Set("state", StateName(gpu));
  out.Set("recoveryAction", gpu.health.recovery_action);
  out.Set("computeMode", gpu.compute_mode);
  out.Set("migMode", gpu.mig_current != 0);
  out.Set("migPending", gpu.mig_pending != 0);
  out.Set("mig", std::move(mig));
  return out;
}

void PrintGpu(const Gpu& gpu, unsigned slot, int index) {
  fmt::print("gpu {} (index {}): {} {} {} {}{}\n", slot, index < 0 ? "-" : std::to_string(index),
             gpu.uuid, sim_root::SysfsPciId(gpu.pci), gpu.name, StateName(gpu),
             gpu.mig_current != 0 ? ", MIG" : "");
  ForEachMig(gpu, [&](unsigned i, const sim_state::MigDevice& device, const std::string& name) {
    fmt::print("  mig {}: {} {} (gi {}, ci {})\n", i, device.uuid, name, device.gi_id,
               device.ci_id);
  });
}

int IndexOf(const Control& control, unsigned slot) {
  for (unsigned i = 0; i < control.gpu_count; ++i) {
    if (control.order[i] == slot) return static_cast<int>(i);
  }
  return -1;
}

Status Run(sim_control::Simulation& simulation, const Options& options) {
  const Control& control = simulation.control();
  const auto sessions = sim_state::OpenSessions(simulation.machine()).size();
  if (!options.json) {
    fmt::print("profile {}, driver {}{}, {} faults of functions, {} open sessions\n",
               control.profile, control.driver_version,
               control.driver_present != 0 ? "" : " (gone)", control.rule_count, sessions);
  }
  doc::Value gpus = doc::Value::List();
  for (unsigned slot = 0; slot < sim_state::kMaxGpus; ++slot) {
    const Gpu& gpu = control.gpus[slot];
    if (gpu.uuid[0] == '\0') continue;
    const int index = IndexOf(control, slot);
    gpus.Append(GpuJson(gpu, slot, index));
    if (!options.json) PrintGpu(gpu, slot, index);
  }
  if (!options.json) return {};
  doc::Value out = doc::Value::Map();
  out.Set("profile", control.profile);
  out.Set("driver", control.driver_version);
  out.Set("driverPresent", control.driver_present != 0);
  out.Set("faults", control.rule_count);
  out.Set("sessions", sessions);
  out.Set("root", simulation.root().string());
  out.Set("gpus", std::move(gpus));
  fmt::print("{}\n", doc::ToJson(out));
  return {};
}

}  // namespace

void AddStatus(Command& program) {
  auto command = program.Sub("status", "The machine as it is");
  auto options = std::make_shared<Options>();
  AddDir(command, *options);
  command.Flag("--json", options->json, "As one JSON object");
  OnMachine(command, options, Run);
}

}  // namespace ndp::sim_cmd
