#include "health/examination.h"

#include <fmt/core.h>

#include <algorithm>

namespace ndp::health {
namespace {

constexpr int kComputeModeExclusiveThread = 1;
constexpr int kComputeModeProhibited = 2;
constexpr int kComputeModeExclusiveProcess = 3;
constexpr unsigned kTemperatureHysteresis = 5;  // °C

// Newer drivers give a margin (a small or negative number) where an absolute threshold was.
constexpr unsigned kLowestAbsoluteThreshold = 60;  // °C

void JudgeRows(const Examination& examination, const config::Health::Checks& checks,
               Judgement& result) {
  const auto& rows = examination.sample.remapped_rows;
  if (rows && checks.row_remap) {
    if (rows->failure) {
      result.bad.push_back({Condition::kRowRemap, "row remapping failed",
                            "run NVIDIA's field diagnostic; the GPU is due for replacement"});
    } else if (rows->pending) {
      result.warnings.emplace_back("a row remapping is pending: reset the GPU when it is free");
    }
  }
  if (!examination.sample.retired_pages_pending.value_or(false)) return;
  if (checks.retired_pages && examination.sample.volatile_uncorrected_ecc.value_or(0) > 0) {
    result.bad.push_back({Condition::kRetiredPages,
                          "page retirement is pending because of a double bit error",
                          "reset the GPU to retire the page"});
  } else {
    result.warnings.emplace_back("a page retirement is pending: reset the GPU when it is free");
  }
}

void JudgeTemperature(const nvml::HealthSample& sample, const CheckContext& context,
                      Judgement& result) {
  if (!sample.temperature || !sample.temperature_shutdown) return;
  const unsigned threshold = *sample.temperature_shutdown;
  if (threshold <= kLowestAbsoluteThreshold) return;
  const unsigned limit = context.temperature_high ? threshold - kTemperatureHysteresis : threshold;
  // At the hysteresis itself it is already over: "back when it has been 5 °C lower".
  const bool bad =
      context.temperature_high ? *sample.temperature > limit : *sample.temperature >= limit;
  if (bad) {
    result.bad.push_back(
        {Condition::kTemperature,
         fmt::format("temperature reached the shutdown threshold of {} °C", threshold),
         "check cooling and load"});
  }
}

void JudgeFabric(const nvml::HealthSample& sample, const CheckContext& context, Judgement& result) {
  if (!sample.fabric || !context.fabric_expected) return;
  const char* state = nullptr;
  switch (sample.fabric->state) {
    case nvml::FabricState::kNotSupported:
    case nvml::FabricState::kCompleted:
      return;
    case nvml::FabricState::kNotStarted:
      state = "not started";
      break;
    case nvml::FabricState::kInProgress:
      state = "in progress";
      break;
  }
  result.bad.push_back({Condition::kFabric, fmt::format("fabric registration is {}", state),
                        "check the fabric manager"});
}

void JudgeComputeMode(const nvml::HealthSample& sample, const CheckContext& context,
                      Judgement& result) {
  if (!sample.compute_mode) return;
  if (*sample.compute_mode == kComputeModeProhibited) {
    result.bad.push_back(
        {Condition::kComputeMode, "compute mode is prohibited", "nvidia-smi --compute-mode=0"});
  } else if ((*sample.compute_mode == kComputeModeExclusiveProcess ||
              *sample.compute_mode == kComputeModeExclusiveThread) &&
             context.shared && !context.mps) {
    result.bad.push_back(
        {Condition::kComputeMode,
         "compute mode is exclusive on a shared GPU that no MPS daemon of ours serves",
         "nvidia-smi --compute-mode=0"});
  }
}

bool NeedsReset(const nvml::Failure& failure) {
  return failure.lost() || failure.status == nvml::kResetRequired;
}

}  // namespace

Examination Examine(nvml::Driver& driver, const std::string& pci_bus_id, Depth depth) {
  Examination result;
  auto identity = driver.Identify(pci_bus_id);
  if (!identity) {
    result.failure = std::move(identity).error();
    return result;
  }
  result.uuid = identity->uuid;
  if (depth == Depth::kCheap) return result;
  // On a MIG GPU in use the driver may refuse: NOT_SUPPORTED passes.
  if (auto memory = driver.UsedMemory(pci_bus_id); !memory && !memory.error().unsupported()) {
    result.failure = std::move(memory).error();
    return result;
  }
  auto sample = driver.Sample(pci_bus_id);
  if (!sample) {
    if (!sample.error().unsupported()) result.failure = std::move(sample).error();
    return result;
  }
  result.sample = *std::move(sample);
  return result;
}

std::string_view ConditionName(Condition condition) {
  switch (condition) {
    case Condition::kUnresponsive:
      return "unresponsive";
    case Condition::kRowRemap:
      return "row-remap";
    case Condition::kRetiredPages:
      return "retired-pages";
    case Condition::kTemperature:
      return "temperature";
    case Condition::kFabric:
      return "fabric";
    case Condition::kComputeMode:
      return "compute-mode";
  }
  return "unknown";
}

int BadSamplesNeeded(Condition condition) {
  switch (condition) {
    case Condition::kRowRemap:
      return 1;
    case Condition::kFabric:
      return 3;
    default:
      return 2;
  }
}

Judgement Judge(const Examination& examination, const config::Health::Checks& checks,
                const CheckContext& context) {
  Judgement result;
  if (examination.failure) {
    if (NeedsReset(*examination.failure)) {
      result.lost = examination.failure->Message();
    } else if (!examination.failure->driver_gone()) {
      // A driver that is gone says nothing about this GPU.
      result.bad.push_back({Condition::kUnresponsive,
                            "the driver answers with an error: " + examination.failure->Message(),
                            "look for NVRM messages in the kernel log"});
    }
    return result;
  }
  const auto lost = std::ranges::find_if(examination.sample.failures, NeedsReset);
  if (lost != examination.sample.failures.end()) {
    result.lost = lost->Message();
    return result;
  }
  JudgeRows(examination, checks, result);
  if (checks.temperature) JudgeTemperature(examination.sample, context, result);
  if (checks.fabric) JudgeFabric(examination.sample, context, result);
  if (checks.compute_mode) JudgeComputeMode(examination.sample, context, result);
  return result;
}

std::string RecoveryActionText(int action) {
  switch (action) {
    case 0:
      return "0: none";
    case 1:
      return "1: GPU reset";
    case 2:
      return "2: node reboot";
    case 3:
      return "3: drain peer-to-peer traffic";
    case 4:
      return "4: drain and reset";
    case 5:
      return "5: recover the IMEX domain";
    case 6:
      return "6: bus reset";
    case 7:
      return "7: system reboot";
    default:
      return fmt::format("{}: unknown to this program", action);
  }
}

std::string RecoveryActionNextStep(int action) {
  switch (action) {
    case 1:
      return "when its pods are gone, reset the GPU: " + std::string(kResetCommands);
    case 2:
    case 7:
      return "drain and reboot the node";
    case 3:
      return "end the applications that use peer-to-peer traffic with this GPU";
    case 4:
      return "drain the GPU's pods, then reset it: " + std::string(kResetCommands);
    case 5:
      return "restart the IMEX domain's applications";
    case 6:
      return "reset the PCI bus of the GPU, or reboot the node";
    default:
      return "see NVIDIA's documentation of GPU recovery actions";
  }
}

}  // namespace ndp::health
