#include "config/check.h"
#include "config/codec.h"
#include "config/option_table.h"

namespace ndp::config {
namespace {

void AddXidOptions(std::vector<Option>& table) {
  table.insert(
      table.end(),
      {
          {.env = {"DP_DISABLE_HEALTHCHECKS"},
           .fallback_text = "none",
           .help = "XIDs to ignore; all or xids: no event and no poll marks anything",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.xids.disabled; })},
          {.env = {"DP_ENABLE_HEALTHCHECKS"},
           .fallback_text = "none",
           .help = "XIDs, or all, to act on whatever else disables or ignores them",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.xids.enabled; })},
          {.key = "health.xids.policy",
           .fallback = "catalogue",
           .help = "What an XID means: NVIDIA's catalogue, or exactly upstream's list",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.xids.policy; })},
          {.flag = "exit-on-stale-injection",
           .env = {"EXIT_ON_STALE_INJECTION"},
           .key = "health.exitOnStaleInjection",
           .fallback = "true",
           .help = "Exit, to be made anew, where the driver that a runtime injected went stale",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.exit_on_stale_injection; })},
          {.key = "health.grace",
           .fallback = "30s",
           .help = "How long the driver may be gone before devices are Unhealthy",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.grace; }, AtLeastZero)},
          {.key = "health.watchdog",
           .fallback = "60s",
           .help = "How long a call of the driver may take before its GPU is Unhealthy",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.watchdog; }, Positive)},
          {.key = "health.stateFile",
           .fallback_text = "`<socket folder>/.ndp-health`",
           .help = "Where verdicts outlive the process; empty: nowhere",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.state_file; })},
          {.key = "health.fencesFile",
           .fallback = "/etc/ndp/fences.yaml",
           .help = "GPUs taken out by hand; empty: none",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.fences_file; })},
      });
}

// One row of health.polling.checks.
template <typename Access>
Option Check(std::string_view key, std::string_view fallback, std::string_view help,
             Access access) {
  return {
      .key = key, .fallback = fallback, .help = help, .programs = kPlugin, .bind = Bind(access)};
}

void AddPollOptions(std::vector<Option>& table) {
  table.insert(
      table.end(),
      {
          Check("health.polling.enabled", "true",
                "Ask the driver for the GPUs' state from time to time",
                [](auto& s) -> auto& { return s.health.polling.enabled; }),
          {.key = "health.polling.interval",
           .fallback = "30s",
           .help = "Time between two polls",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.polling.interval; }, Positive)},
          Check("health.polling.checks.lost", "true", "A GPU that is lost or must be reset",
                [](auto& s) -> auto& { return s.health.polling.checks.lost; }),
          Check("health.polling.checks.rowRemap", "true", "A failure to remap rows of memory",
                [](auto& s) -> auto& { return s.health.polling.checks.row_remap; }),
          Check("health.polling.checks.recoveryAction", "true",
                "A recovery action that the driver asks for",
                [](auto& s) -> auto& { return s.health.polling.checks.recovery_action; }),
          Check("health.polling.checks.retiredPages", "false",
                "Pages to be retired because of a double-bit error",
                [](auto& s) -> auto& { return s.health.polling.checks.retired_pages; }),
          Check("health.polling.checks.temperature", "true",
                "A temperature at the shutdown threshold",
                [](auto& s) -> auto& { return s.health.polling.checks.temperature; }),
          Check("health.polling.checks.fabric", "true", "A fabric that was joined and is no more",
                [](auto& s) -> auto& { return s.health.polling.checks.fabric; }),
          Check("health.polling.checks.computeMode", "true",
                "A compute mode that keeps containers out",
                [](auto& s) -> auto& { return s.health.polling.checks.compute_mode; }),
      });
}

void AddRecoveryOptions(std::vector<Option>& table) {
  table.insert(
      table.end(),
      {
          {.key = "health.recovery.enabled",
           .fallback = "true",
           .help = "Unhealthy devices come back on evidence; false: never, as upstream",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.recovery.enabled; })},
          {.key = "health.recovery.holdOff",
           .fallback = "60s",
           .help = "The least time from a GPU's last fault until it may be Healthy",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.recovery.hold_off; }, AtLeastZero)},
          {.key = "health.recovery.probes",
           .fallback = "3",
           .help = "Good probes in a row that a GPU needs to be Healthy again",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.recovery.probes; }, CountPositive)},
          {.key = "health.recovery.probeInterval",
           .fallback = "10s",
           .help = "Time between two probes",
           .programs = kPlugin,
           .bind =
               Bind([](auto& s) -> auto& { return s.health.recovery.probe_interval; }, Positive)},
          {.key = "health.recovery.releaseFaultyGpu",
           .fallback = "false",
           .help = "Let go of the driver while a GPU waits for a reset",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.health.recovery.release_faulty_gpu; })},
      });
}

}  // namespace

void AddHealthOptions(std::vector<Option>& table) {
  AddXidOptions(table);
  AddPollOptions(table);
  AddRecoveryOptions(table);
}

}  // namespace ndp::config
