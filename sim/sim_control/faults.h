// Faults: what a driver reports, and what its functions do wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sim_control/simulation.h"
#include "sim_state/layout.h"

namespace ndp::sim_control {

// Event types by name: xid, sbe, dbe, sbe-storm, dram-retirement, dram-retirement-failure,
// poison, fatal-poison, unavailable, recovery-action; or a number.
Result<std::uint64_t> ParseEventType(std::string_view text);
std::string EventTypeNames();

// These events at one stroke, `count` times, to whoever has registered for them by now.
Status SendEvents(Simulation& simulation, const std::vector<sim_state::Event>& events,
                  std::uint32_t count);

Status SetGpuState(Simulation& simulation, std::uint32_t slot, sim_state::GpuState state);

// A function by name ("nvmlDeviceGetMemoryInfo"), or `all`; its index, or -1.
Result<std::int32_t> ParseFunction(std::string_view text);

// Adds the rule; one of the same function, GPU and kind is replaced. A missing symbol of all GPUs
// vanishes from the installed library, too.
Status AddRule(Simulation& simulation, const sim_state::Rule& rule);
// Ends rules: of that function (or, nullopt, every one) and that GPU.
Status EndRules(Simulation& simulation, std::optional<std::int32_t> function,
                std::optional<std::uint32_t> slot);

// nvmlInit answers `code` from the nth call from now on (1 = the next), for a while or (nullopt)
// until ended by code 0.
Status SetInitFault(Simulation& simulation, std::int32_t code, std::uint32_t from_call,
                    std::optional<Duration> duration);

}  // namespace ndp::sim_control
