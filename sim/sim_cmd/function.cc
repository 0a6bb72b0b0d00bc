#include "base/duration.h"
#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"
#include "sim_control/faults.h"

namespace ndp::sim_cmd {
namespace {

struct Options : MachineOptions {
  std::string function;
  std::string latency;
  std::string error;
  std::string duration;
  bool hang = false;
  bool missing = false;
  bool ok = false;
};

Status Run(sim_control::Simulation& simulation, const Options& options) {
  NDP_TRY(const std::int32_t function, sim_control::ParseFunction(options.function));
  NDP_TRY(const auto slot, Slot(simulation, options));
  if (options.ok) return sim_control::EndRules(simulation, function, slot);
  sim_state::Rule rule{.function = function, .gpu = slot ? static_cast<std::int32_t>(*slot) : -1};
  if (!options.latency.empty()) {
    NDP_TRY(const Duration latency, ParseDuration(options.latency).Context("--latency"));
    rule.kind = sim_state::RuleKind::kLatency;
    rule.latency_ns = latency.count();
  } else if (!options.error.empty()) {
    NDP_TRY(rule.code, ParseNvmlStatus(options.error));
    rule.kind = sim_state::RuleKind::kError;
  } else {
    rule.kind = options.hang ? sim_state::RuleKind::kHang : sim_state::RuleKind::kMissing;
  }
  if (!options.duration.empty()) {
    NDP_TRY(const Duration duration, ParseDuration(options.duration).Context("--for"));
    rule.until_ns = sim_state::MonotonicNs() + duration.count();
  }
  return sim_control::AddRule(simulation, rule);
}

}  // namespace

void AddFunction(Command& program) {
  auto command = program.Sub("function", "Make a function slow, fail, hang or vanish");
  auto options = std::make_shared<Options>();
  AddDir(command, *options);
  AddGpuOption(command, *options);
  command.Add("--function", options->function, "Exported name, or all").Required();
  command.ExactlyOne(
      {command.Add("--latency", options->latency, "Calls take so much longer, e.g. 600ms"),
       command.Add("--error", options->error, "Calls return this status: a name or number"),
       command.Flag("--hang", options->hang, "Calls do not return until this is ended"),
       command.Flag("--missing", options->missing,
                    "Calls return FUNCTION_NOT_FOUND, and (without --gpu) whoever loads the "
                    "library from now on does not find the symbol"),
       command.Flag("--ok", options->ok, "End what was set")});
  command.Add("--for", options->duration, "Only for this long, e.g. 5s");
  OnMachine(command, options, Run);
}

}  // namespace ndp::sim_cmd
