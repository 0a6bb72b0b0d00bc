#include "health/board.h"

#include <fmt/format.h>

#include <algorithm>

namespace ndp::health {
namespace {

DeviceHealth FromCause(const Cause& cause) {
  return {.healthy = false,
          .reason = cause.reason,
          .cause_class = std::string(CauseClassName(cause.cause_class)),
          .xid = cause.xid,
          .next_step = cause.next_step,
          .since = cause.since,
          .count = cause.count,
          .warnings = {}};
}

// The cause that is told: what needs most goes first, among equals what came first.
const Cause* Weightiest(const GpuRecord& record, auto&& covers) {
  const Cause* result = nullptr;
  const auto consider = [&](const Cause& cause) {
    if (!covers(cause.scope)) return;
    const auto weight = [](const Cause& c) {
      return c.cause_class == CauseClass::kReset ? 2 : c.cause_class == CauseClass::kFault ? 1 : 0;
    };
    if (result == nullptr || weight(cause) > weight(*result)) result = &cause;
  };
  for (const Cause& cause : record.causes) consider(cause);
  for (const auto& cause : record.conditions) {
    if (cause) consider(*cause);
  }
  return result;
}

DeviceHealth Verdict(const GpuState& state, auto&& covers) {
  DeviceHealth result;
  if (const Cause* cause = Weightiest(*state.record, covers)) {
    result = FromCause(*cause);
    for (const Cause& other : state.record->causes) {
      if (covers(other.scope)) result.since = std::min(result.since, other.since);
    }
    if (cause->cause_class == CauseClass::kReset && !state.after_reset.empty()) {
      result.next_step = state.after_reset;
    }
    if (state.record->quarantined) {
      result.reason = fmt::format("quarantined after {} relapses in 24 hours: {}",
                                  state.record->relapses.size(), cause->reason);
      result.next_step = "reset the GPU, or ndp health clear; it is likely to be defective";
    }
  }
  if (state.hung && !result.healthy) result.cause_class = "hang";
  result.warnings = state.warnings;
  return result;
}

void ApplyFence(DeviceHealth& device, const Fenced& fence) {
  // A fence goes before every fault: a person decided, and only a person undoes it.
  device = {.healthy = false,
            .reason = "fenced: " + fence.reason,
            .cause_class = "fence",
            .xid = {},
            .next_step = "take the GPU out of the fences file when it may be used again",
            .since = fence.since,
            .count = 1,
            .warnings = device.warnings};
}

}  // namespace

bool DeviceHealth::SameVerdict(const DeviceHealth& other) const {
  return healthy == other.healthy && reason == other.reason && cause_class == other.cause_class &&
         xid == other.xid && since == other.since && warnings == other.warnings;
}

const DeviceHealth& HealthBoard::Of(std::string_view uuid) const {
  static const DeviceHealth healthy_device;
  const auto found = devices.find(uuid);
  return found != devices.end() ? found->second : healthy_device;
}

bool HealthBoard::SameVerdicts(const HealthBoard& other) const {
  return driver == other.driver &&
         std::ranges::equal(devices, other.devices, [](const auto& a, const auto& b) {
           return a.first == b.first && a.second.SameVerdict(b.second);
         });
}

HealthBoard BuildBoard(const std::vector<GpuState>& gpus,
                       const std::map<std::string, Fenced>& fences, const DriverHealth& driver) {
  HealthBoard board{.devices = {}, .driver = driver};
  for (const GpuState& state : gpus) {
    const inventory::Gpu& gpu = *state.gpu;
    const auto gpu_fence = fences.find(gpu.uuid());
    const auto finish = [&](const std::string& uuid, const std::string& index,
                            DeviceHealth device) {
      if (!driver.available && driver.grace_over) {
        device = {.healthy = false,
                  .reason = "the driver cannot be reached: " + driver.reason,
                  .cause_class = "driver",
                  .xid = {},
                  .next_step = "check the driver on the host; devices come back with it",
                  .since = driver.since,
                  .count = 1,
                  .warnings = {}};
      }
      const auto own_fence = fences.find(uuid);
      if (own_fence != fences.end()) {
        ApplyFence(device, own_fence->second);
      } else if (gpu_fence != fences.end()) {
        ApplyFence(device, gpu_fence->second);
      }
      device.index = gpu.pci_bus_id().empty() ? "" : index;
      device.pci_bus_id = gpu.pci_bus_id();
      board.devices.insert_or_assign(uuid, std::move(device));
    };
    // The GPU as a whole has the troubles of all its parts.
    finish(gpu.uuid(), std::to_string(gpu.index()),
           Verdict(state, [](const Scope&) { return true; }));
    for (const inventory::MigDevice& mig : gpu.mig) {
      finish(mig.nvml.uuid, fmt::format("{}:{}", gpu.index(), mig.nvml.slot),
             Verdict(state, [&](const Scope& scope) {
               return scope.Covers(mig.nvml.gpu_instance, mig.nvml.compute_instance);
             }));
    }
  }
  return board;
}

std::vector<Transition> Transitions(const HealthBoard& before, const HealthBoard& after) {
  std::vector<Transition> result;
  for (const auto& [uuid, now] : after.devices) {
    const DeviceHealth& then = before.Of(uuid);
    if (then.healthy != now.healthy || then.reason != now.reason) {
      result.push_back({.uuid = uuid, .before = then, .after = now});
    }
  }
  return result;
}

}  // namespace ndp::health
