#include "sim_control/mig.h"

#include <string>

#include "sim_state/mig_model.h"

namespace ndp::sim_control {
namespace {

using sim_state::Control;
using sim_state::Gpu;

std::string NameOf(std::uint32_t slot) { return "GPU " + std::to_string(slot); }

Status CheckMigCapable(const Gpu& gpu, std::uint32_t slot) {
  if (gpu.mig_model >= 0) return {};
  return Error(Code::kUnsupported, NameOf(slot) + " (" + gpu.name + ") has no MIG");
}

}  // namespace

Status SetMigMode(Simulation& simulation, std::uint32_t slot, bool on) {
  NDP_TRY(CheckMigCapable(simulation.control().gpus[slot], slot));
  if ((simulation.control().gpus[slot].mig_current != 0) == on) {
    return SetPendingMigMode(simulation, slot, on);
  }
  if (const auto user = simulation.UserOf(slot)) {
    return Error(Code::kUnavailable, NameOf(slot) + " is in use by another client: " + *user);
  }
  return simulation.Change([&](Control& control) {
    Gpu& gpu = control.gpus[slot];
    gpu.mig_current = gpu.mig_pending = on ? 1 : 0;
    gpu.mig = {};
    return Status();
  });
}

Status SetPendingMigMode(Simulation& simulation, std::uint32_t slot, bool on) {
  NDP_TRY(CheckMigCapable(simulation.control().gpus[slot], slot));
  return simulation.Change([&](Control& control) {
    control.gpus[slot].mig_pending = on ? 1 : 0;
    return Status();
  });
}

Status Partition(Simulation& simulation, std::uint32_t slot, std::string_view profiles) {
  const Gpu& now = simulation.control().gpus[slot];
  NDP_TRY(CheckMigCapable(now, slot));
  if (now.mig_current == 0) {
    return Error(Code::kUnsupported, NameOf(slot) + " is not in MIG mode (--mode on)");
  }
  const auto& model = sim_state::MigModels()[static_cast<std::size_t>(now.mig_model)];
  NDP_TRY(const sim_state::MigLayout layout,
          sim_state::ParseMigLayout(model, profiles, now.uuid, now.mig,
                                    simulation.control().mig_generation));
  return simulation.Change([&](Control& control) {
    control.gpus[slot].mig = layout;
    ++control.mig_generation;
    return Status();
  });
}

Status DestroyInstance(Simulation& simulation, std::uint32_t slot, std::uint32_t gi_id) {
  return simulation.Change([&](Control& control) {
    bool found = false;
    for (auto& instance : control.gpus[slot].mig.instances) {
      if (instance.used == 0 || instance.id != gi_id) continue;
      instance = {};
      found = true;
    }
    if (!found) {
      return Status(Error(Code::kInvalidArgument,
                          NameOf(slot) + " has no GPU instance " + std::to_string(gi_id)));
    }
    for (auto& device : control.gpus[slot].mig.devices) {
      if (device.used != 0 && device.gi_id == gi_id) device = {};
    }
    return Status();
  });
}

Status SetMigPermission(Simulation& simulation, std::uint32_t slot, bool allowed) {
  return simulation.Change([&](Control& control) {
    control.gpus[slot].mig_no_permission = allowed ? 0 : 1;
    return Status();
  });
}

}  // namespace ndp::sim_control
