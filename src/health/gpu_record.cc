#include "health/gpu_record.h"

#include <algorithm>

namespace ndp::health {
namespace {

bool Fell(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& now) {
  return before && now && *now < *before;
}

void Keep(std::optional<std::uint64_t>& value, const std::optional<std::uint64_t>& now) {
  if (now) value = now;
}

}  // namespace

std::string_view CauseClassName(CauseClass cause_class) {
  switch (cause_class) {
    case CauseClass::kFault:
      return "fault";
    case CauseClass::kReset:
      return "reset";
    case CauseClass::kCondition:
      return "condition";
  }
  return "fault";
}

Counters Counters::Of(const nvml::HealthSample& sample) {
  return {.uncorrected_ecc = sample.volatile_uncorrected_ecc,
          .corrected_ecc = sample.volatile_corrected_ecc,
          .pcie_replays = sample.pcie_replays,
          .energy_mj = sample.total_energy_mj};
}

std::optional<std::string_view> Counters::FellTo(const Counters& now) const {
  if (Fell(uncorrected_ecc, now.uncorrected_ecc)) return "uncorrected ECC errors";
  if (Fell(corrected_ecc, now.corrected_ecc)) return "corrected ECC errors";
  if (Fell(pcie_replays, now.pcie_replays)) return "PCIe replays";
  if (Fell(energy_mj, now.energy_mj)) return "total energy";
  return std::nullopt;
}

void Counters::Update(const Counters& now) {
  Keep(uncorrected_ecc, now.uncorrected_ecc);
  Keep(corrected_ecc, now.corrected_ecc);
  Keep(pcie_replays, now.pcie_replays);
  Keep(energy_mj, now.energy_mj);
}

bool GpuRecord::healthy() const {
  return causes.empty() &&
         std::ranges::none_of(conditions, [](const auto& cause) { return cause.has_value(); });
}

bool GpuRecord::blank() const { return healthy() && !recovered && relapses.empty(); }

}  // namespace ndp::health
