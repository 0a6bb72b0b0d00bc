// Coming and going: resets, GPUs, the driver, the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim_control/simulation.h"

namespace ndp::sim_control {

// A GPU reset: refused (kUnavailable) while anybody holds the GPU open. Ends its faults, sets its
// volatile counters to 0 and makes a pending MIG mode the current one.
Status ResetGpu(Simulation& simulation, std::uint32_t slot);

// Ends all faults (of one GPU, or all) and leaves the traces of a reset, whoever has a session
// open. What has a way back of its own stays: removed GPUs, the order, MIG, the driver.
Status Clear(Simulation& simulation, std::optional<std::uint32_t> slot);

// The GPU vanishes from the enumeration: sessions that are open see a lost one.
Status RemoveGpu(Simulation& simulation, std::uint32_t slot);
Status AddGpu(Simulation& simulation, std::uint32_t slot);
// Slots in their new order; every GPU that is there must be named once.
Status Reorder(Simulation& simulation, const std::vector<std::uint32_t>& order);

// The driver is unloaded: living sessions answer `status` (9 or 1) and nvmlInit fails. With
// `files`, what the driver package installed goes as well.
Status DriverGone(Simulation& simulation, std::uint32_t status, bool files);
// Loaded again; sessions of before stay dead.
Status DriverBack(Simulation& simulation, const std::filesystem::path& nvml);
// Another version is installed and loaded. A library of the old one that a client still has mapped
// answers nvmlInit with a version mismatch.
Status DriverUpgrade(Simulation& simulation, const std::string& version,
                     const std::filesystem::path& nvml);
// The loaded module is of another version than the library: nvmlInit fails with 18.
Status VersionMismatch(Simulation& simulation, bool on);

// The machine has rebooted: a new boot id, sessions dead, all counters at 0.
Status Reboot(Simulation& simulation);

}  // namespace ndp::sim_control
