// MIG: mode and layout.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "sim_control/simulation.h"

namespace ndp::sim_control {

// Refused (kUnavailable) while anybody holds the GPU open, as "in use by another client".
// Switching off ends all instances.
Status SetMigMode(Simulation& simulation, std::uint32_t slot, bool on);
// Only the pending mode: it becomes the current one by a reset.
Status SetPendingMigMode(Simulation& simulation, std::uint32_t slot, bool on);

// A new layout (its text: sim_state/mig_model.h), whoever has a session open. Devices that are the
// same in both keep their UUIDs.
Status Partition(Simulation& simulation, std::uint32_t slot, std::string_view profiles);

// Ends one GPU instance with its devices; the MIG indices of the others stay.
Status DestroyInstance(Simulation& simulation, std::uint32_t slot, std::uint32_t gi_id);

// MIG queries of the GPU answer NO_PERMISSION, as they do in a container without the capability.
Status SetMigPermission(Simulation& simulation, std::uint32_t slot, bool allowed);

}  // namespace ndp::sim_control
