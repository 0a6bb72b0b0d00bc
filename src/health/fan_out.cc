#include "health/fan_out.h"

#include <fmt/core.h>

namespace ndp::health {

Scope ScopeOf(const inventory::Gpu& gpu, const nvml::Event& event, bool needs_reset) {
  if (needs_reset || !gpu.mig_enabled() || !event.gpu_instance) return {};
  return {.gpu_instance = event.gpu_instance, .compute_instance = event.compute_instance};
}

std::vector<std::string> AffectedDevices(const inventory::Gpu& gpu, const Scope& scope) {
  std::vector<std::string> devices = {gpu.uuid()};
  for (const inventory::MigDevice& mig : gpu.mig) {
    if (scope.Covers(mig.nvml.gpu_instance, mig.nvml.compute_instance)) {
      devices.push_back(mig.nvml.uuid);
    }
  }
  return devices;
}

std::string ScopeText(const Scope& scope) {
  if (scope.whole()) return "";
  if (!scope.compute_instance) return fmt::format(" (GPU instance {})", *scope.gpu_instance);
  return fmt::format(" (GPU instance {}, compute instance {})", *scope.gpu_instance,
                     *scope.compute_instance);
}

}  // namespace ndp::health
