#include "sim_control/faults.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "sim_root/driver_files.h"
#include "sim_state/functions.h"

namespace ndp::sim_control {
namespace {

using sim_state::Control;
using sim_state::Rule;
using sim_state::RuleKind;

struct EventName {
  std::string_view name;
  std::uint64_t type;
};
constexpr EventName kEventNames[] = {
    {"xid", 0x8},
    {"sbe", 0x1},
    {"dbe", 0x2},
    {"sbe-storm", 0x200},
    {"dram-retirement", 0x400},
    {"dram-retirement-failure", 0x800},
    {"poison", 0x1000},
    {"fatal-poison", 0x2000},
    {"unavailable", 0x4000},
    {"recovery-action", 0x8000},
};

bool SameFault(const Rule& a, const Rule& b) {
  return a.function == b.function && a.gpu == b.gpu && a.kind == b.kind;
}

std::filesystem::path Library(const Simulation& simulation) {
  return sim_root::InstalledNvml(simulation.driver_root(), simulation.control().driver_version,
                                 simulation.control().driver_layout);
}

}  // namespace

Result<std::uint64_t> ParseEventType(std::string_view text) {
  for (const EventName& event : kEventNames) {
    if (event.name == text) return event.type;
  }
  const auto number = text.starts_with("0x") ? ParseHex(text) : ParseUnsigned(text);
  if (number && *number != 0) return *number;
  return Error(Code::kInvalidArgument, "event type \"" + std::string(text) + "\": must be one of " +
                                           EventTypeNames() + ", or a number");
}

std::string EventTypeNames() {
  std::vector<std::string> names;
  for (const EventName& event : kEventNames) names.emplace_back(event.name);
  return Join(names, ", ");
}

Status SendEvents(Simulation& simulation, const std::vector<sim_state::Event>& events,
                  std::uint32_t count) {
  // No file follows from an event, so the files are left alone: it counts in milliseconds.
  return simulation.machine().Write([&](Control& control) {
    for (std::uint32_t i = 0; i < count; ++i) {
      for (const auto& event : events) sim_state::Machine::PushEvent(control, event);
    }
    return Status();
  });
}

Status SetGpuState(Simulation& simulation, std::uint32_t slot, sim_state::GpuState state) {
  return simulation.machine().Write([&](Control& control) {
    control.gpus[slot].state = state;
    return Status();
  });
}

Result<std::int32_t> ParseFunction(std::string_view text) {
  if (text == "all") return -1;
  const int function = sim_state::FindFunction(text);
  if (function >= 0) return function;
  std::string message = "--function " + std::string(text) + ": the library has no such function";
  if (const auto nearest = Nearest(text, sim_state::kFunctionNames)) {
    message += "; did you mean " + std::string(*nearest) + "?";
  }
  return Error(Code::kInvalidArgument, message + " (`all` means every one)");
}

Status AddRule(Simulation& simulation, const Rule& rule) {
  NDP_TRY(simulation.machine().Write([&](Control& control) {
    const auto end = control.rules + control.rule_count;
    const auto same =
        std::find_if(control.rules, end, [&](const Rule& other) { return SameFault(rule, other); });
    if (same == end && control.rule_count == sim_state::kMaxRules) {
      return Status(Error(Code::kUnavailable,
                          "more than " + std::to_string(sim_state::kMaxRules) + " faults at once"));
    }
    *same = rule;
    if (same == end) ++control.rule_count;
    return Status();
  }));
  if (rule.kind != RuleKind::kMissing || rule.function < 0 || rule.gpu >= 0) return {};
  return sim_root::SetSymbolMissing(
      Library(simulation),
      std::string(sim_state::kFunctionNames[static_cast<std::size_t>(rule.function)]), true);
}

Status EndRules(Simulation& simulation, std::optional<std::int32_t> function,
                std::optional<std::uint32_t> slot) {
  std::vector<std::string> restored;
  NDP_TRY(simulation.machine().Write([&](Control& control) {
    const auto ends = [&](const Rule& rule) {
      const bool ended = (!function || rule.function == *function) &&
                         (!slot || rule.gpu == static_cast<std::int32_t>(*slot));
      if (ended && rule.kind == RuleKind::kMissing && rule.function >= 0) {
        restored.emplace_back(sim_state::kFunctionNames[static_cast<std::size_t>(rule.function)]);
      }
      return ended;
    };
    const auto end = std::remove_if(control.rules, control.rules + control.rule_count, ends);
    control.rule_count = static_cast<std::uint32_t>(end - control.rules);
    return Status();
  }));
  for (const std::string& name : restored) {
    NDP_TRY(sim_root::SetSymbolMissing(Library(simulation), name, false));
  }
  return {};
}

Status SetInitFault(Simulation& simulation, std::int32_t code, std::uint32_t from_call,
                    std::optional<Duration> duration) {
  simulation.machine().clients().init_calls.store(0);
  return simulation.machine().Write([&](Control& control) {
    control.init_fault = {.code = code,
                          .from_call = from_call,
                          .until_ns = duration ? sim_state::MonotonicNs() + duration->count() : 0};
    return Status();
  });
}

}  // namespace ndp::sim_control
