// What is remembered of one GPU's health: plain data, also what the state file keeps.
//
// Points in time are CLOCK_MONOTONIC's, which goes on counting over a restart of the program; the
// file is keyed by boot id, so they never meet another boot's clock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "health/examination.h"
#include "health/fan_out.h"

namespace ndp::health {

enum class CauseClass {
  kFault,      // over when it has recovered
  kReset,      // over when a reset was seen as well
  kCondition,  // over when it is no longer seen
};
// "fault", "reset", "condition".
std::string_view CauseClassName(CauseClass cause_class);

// Why a GPU, or a part of it, is Unhealthy.
struct Cause {
  CauseClass cause_class = CauseClass::kFault;
  Scope scope;
  std::optional<std::uint64_t> xid;
  std::string reason;
  std::string next_step;
  WallTime since{};
  std::uint64_t count = 1;
  bool operator==(const Cause&) const = default;
};

// Counters that only a reset (or a reload of the driver) takes back.
struct Counters {
  std::optional<std::uint64_t> uncorrected_ecc;
  std::optional<std::uint64_t> corrected_ecc;
  std::optional<std::uint64_t> pcie_replays;
  std::optional<std::uint64_t> energy_mj;

  static Counters Of(const nvml::HealthSample& sample);
  // The name of the first counter that is lower in `now`; a value absent in either says nothing.
  std::optional<std::string_view> FellTo(const Counters& now) const;
  // Keeps the old value where the new one is absent.
  void Update(const Counters& now);
  bool operator==(const Counters&) const = default;
};

struct GpuRecord {
  // Latched faults, oldest first; conditions are kept apart since they clear by themselves.
  std::vector<Cause> causes;
  std::array<std::optional<Cause>, kConditions> conditions;

  bool awaits_reset = false;  // evidence of a reset is still missing
  bool quarantined = false;
  bool action_was_set = false;  // the recovery action was not 0 since the fault
  bool fabric_completed = false;
  MonoTime last_fault{};
  std::optional<MonoTime> recovered;  // when it became Healthy after a fault
  std::vector<MonoTime> relapses;     // of the last 24 hours
  Counters counters;
  MonoTime updated{};  // of two records of a GPU the later one counts

  bool healthy() const;
  // Says nothing that a new process would not assume.
  bool blank() const;
  bool operator==(const GpuRecord&) const = default;
};

}  // namespace ndp::health
