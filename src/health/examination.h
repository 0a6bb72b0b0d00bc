// What one look at a GPU found, and what the polled checks make of it. Used for polls, for the
// probes of recovery and after trouble with the event wait alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "nvml/driver.h"

namespace ndp::health {

struct Examination {
  // The first call that failed for another reason than NOT_SUPPORTED; the rest was not asked then.
  std::optional<nvml::Failure> failure;
  std::string uuid;  // of the GPU at that PCI address
  nvml::HealthSample sample;
};

// Blocks on the driver: only on a worker thread. kCheap makes one call: for a GPU whose calls hung.
enum class Depth { kCheap, kFull };
Examination Examine(nvml::Driver& driver, const std::string& pci_bus_id,
                    Depth depth = Depth::kFull);

// Conditions last as long as they are seen, and clear by themselves; each has one reason.
enum class Condition {
  kUnresponsive,  // the driver answers with an error for this GPU
  kRowRemap,
  kRetiredPages,
  kTemperature,
  kFabric,
  kComputeMode,
};
inline constexpr int kConditions = 6;

std::string_view ConditionName(Condition condition);
// How many bad samples in a row make it: row remapping failures are final, fabrics flap.
int BadSamplesNeeded(Condition condition);

struct Finding {
  Condition condition;
  std::string reason;
  std::string next_step;
};

// What the checks need to know that NVML does not tell.
struct CheckContext {
  bool shared = false;            // the GPU has replicas
  bool mps = false;               // a running MPS daemon of ours serves it
  bool fabric_expected = false;   // it was completed before, or is on the node's other GPUs
  bool temperature_high = false;  // the condition holds already: ends 5 °C lower
};

struct Judgement {
  std::vector<Finding> bad;
  std::vector<std::string> warnings;  // the GPU stays Healthy
  // The handle is lost or needs a reset: class reset at once.
  std::optional<std::string> lost;
};

// Pure. Values the driver does not support pass.
Judgement Judge(const Examination& examination, const config::Health::Checks& checks,
                const CheckContext& context);

// "1: GPU reset"; "9: unknown to this program" is a reason all the same.
std::string RecoveryActionText(int action);
std::string RecoveryActionNextStep(int action);
// How a GPU is reset beside a plugin that has it open.
inline constexpr std::string_view kResetCommands =
    "ndp release; nvidia-smi --gpu-reset -i <GPU>; ndp resume";

}  // namespace ndp::health
