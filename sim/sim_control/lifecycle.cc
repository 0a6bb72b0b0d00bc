#include "sim_control/lifecycle.h"

#include <algorithm>
#include <string>

#include "sim_control/faults.h"
#include "sim_root/driver_files.h"
#include "sim_root/files.h"
#include "sim_root/host_files.h"

namespace ndp::sim_control {
namespace {

using sim_state::Control;
using sim_state::Gpu;

// What a GPU is like after a reset: healthy, and with counters that start anew.
void LeaveTraces(Gpu& gpu) {
  gpu.state = sim_state::GpuState::kOk;
  auto& health = gpu.health;
  health.recovery_action = std::min(health.recovery_action, 0);
  health.remap_pending = 0;
  health.retired_pending = std::min(health.retired_pending, 0);
  health.ecc[0][0] = 0;
  health.ecc[1][0] = 0;
  health.pcie_replay = 0;
  health.energy_millijoule = 0;
  health.energy_since_ns = sim_state::RealtimeNs();
}

// Faults of the hardware itself, which a reset would not cure but `clear` does.
void EndHardwareFaults(Gpu& gpu) {
  auto& health = gpu.health;
  health.remap_failure = 0;
  health.temperature = health.temperature < 0 ? health.temperature : 34;
  gpu.compute_mode = 0;
  gpu.mig_no_permission = 0;
  if (gpu.fabric.state != 0) {
    gpu.fabric.state = 3;
    gpu.fabric.status = 0;
    gpu.fabric.health_mask = 0;
  }
}

void ApplyPendingMig(Gpu& gpu) {
  if (gpu.mig_current == gpu.mig_pending) return;
  gpu.mig_current = gpu.mig_pending;
  gpu.mig = {};
}

std::string NameOf(const Simulation& simulation, std::uint32_t slot) {
  return "GPU " + std::to_string(slot) + " (" + simulation.control().gpus[slot].uuid + ")";
}

}  // namespace

Status ResetGpu(Simulation& simulation, std::uint32_t slot) {
  if (const auto user = simulation.UserOf(slot)) {
    return Error(Code::kUnavailable,
                 NameOf(simulation, slot) + " is in use by another client: " + *user);
  }
  return simulation.Change([&](Control& control) {
    LeaveTraces(control.gpus[slot]);
    ApplyPendingMig(control.gpus[slot]);
    return Status();
  });
}

Status Clear(Simulation& simulation, std::optional<std::uint32_t> slot) {
  NDP_TRY(EndRules(simulation, std::nullopt, slot));
  if (!slot) {
    NDP_TRY(SetInitFault(simulation, 0, 0, std::nullopt));
    NDP_TRY(VersionMismatch(simulation, false));
  }
  return simulation.Change([&](Control& control) {
    for (std::uint32_t i = 0; i < sim_state::kMaxGpus; ++i) {
      if (control.gpus[i].uuid[0] != '\0' && (!slot || *slot == i)) {
        LeaveTraces(control.gpus[i]);
        EndHardwareFaults(control.gpus[i]);
      }
    }
    return Status();
  });
}

Status RemoveGpu(Simulation& simulation, std::uint32_t slot) {
  return simulation.Change([&](Control& control) {
    const auto end = control.order + control.gpu_count;
    const auto found = std::find(control.order, end, slot);
    if (found == end) {
      return Status(Error(Code::kInvalidArgument, NameOf(simulation, slot) + " is not there"));
    }
    std::copy(found + 1, end, found);
    --control.gpu_count;
    control.gpus[slot].present = 0;
    return Status();
  });
}

Status AddGpu(Simulation& simulation, std::uint32_t slot) {
  return simulation.Change([&](Control& control) {
    const auto end = control.order + control.gpu_count;
    if (std::find(control.order, end, slot) != end) {
      return Status(Error(Code::kInvalidArgument, NameOf(simulation, slot) + " is there already"));
    }
    // Behind its nearest lower neighbour, as a scan of the bus finds it.
    const auto place = std::find_if(control.order, end, [&](std::uint32_t s) { return s > slot; });
    std::copy_backward(place, end, end + 1);
    *place = slot;
    ++control.gpu_count;
    control.gpus[slot].present = 1;
    LeaveTraces(control.gpus[slot]);
    ApplyPendingMig(control.gpus[slot]);
    return Status();
  });
}

Status Reorder(Simulation& simulation, const std::vector<std::uint32_t>& order) {
  return simulation.Change([&](Control& control) {
    if (!std::is_permutation(order.begin(), order.end(), control.order,
                             control.order + control.gpu_count)) {
      return Status(Error(Code::kInvalidArgument, "the order must name each of the " +
                                                      std::to_string(control.gpu_count) +
                                                      " GPUs that are there once"));
    }
    std::ranges::copy(order, control.order);
    return Status();
  });
}

Status DriverGone(Simulation& simulation, std::uint32_t status, bool files) {
  if (status != 1 && status != 9) {
    return Error(Code::kInvalidArgument, "--status " + std::to_string(status) + ": must be 9 or 1");
  }
  NDP_TRY(simulation.Change([&](Control& control) {
    control.driver_present = 0;
    control.gone_status = status;
    ++control.driver_epoch;
    return Status();
  }));
  if (!files) return {};
  return sim_root::RemoveDriverFiles(simulation.driver_root(), simulation.control().driver_layout);
}

Status DriverBack(Simulation& simulation, const std::filesystem::path& nvml) {
  const Control& before = simulation.control();
  NDP_TRY(sim_root::WriteDriverFiles(simulation.driver_root(), before.driver_version, nvml,
                                     before.driver_layout));
  return simulation.Change([](Control& control) {
    control.driver_present = 1;
    return Status();
  });
}

Status DriverUpgrade(Simulation& simulation, const std::string& version,
                     const std::filesystem::path& nvml) {
  if (!sim_profile::IsDriverVersion(version)) {
    return Error(Code::kInvalidArgument,
                 "--version " + version + ": must be two or three numbers such as 575.57.08");
  }
  NDP_TRY(sim_root::WriteDriverFiles(simulation.driver_root(), version, nvml,
                                     simulation.control().driver_layout));
  NDP_TRY(simulation.Change([&](Control& control) {
    sim_state::SetText(control.driver_version, version);
    sim_state::SetText(control.nvml_version, "12." + version);
    control.driver_present = 1;
    control.module_mismatch = 0;
    ++control.driver_epoch;
    return Status();
  }));
  return sim_root::RemakeModuleFolder(simulation.root(), simulation.control());
}

Status VersionMismatch(Simulation& simulation, bool on) {
  return simulation.machine().Write([&](Control& control) {
    control.module_mismatch = on ? 1 : 0;
    return Status();
  });
}

Status Reboot(Simulation& simulation) {
  NDP_TRY(sim_root::WriteBootId(simulation.root(), NewBootId()));
  NDP_TRY(simulation.Change([](Control& control) {
    ++control.driver_epoch;
    for (Gpu& gpu : control.gpus) {
      if (gpu.uuid[0] == '\0') continue;
      LeaveTraces(gpu);
      ApplyPendingMig(gpu);
    }
    return Status();
  }));
  if (simulation.control().driver_present == 0) return {};
  return sim_root::RemakeModuleFolder(simulation.root(), simulation.control());
}

}  // namespace ndp::sim_control
