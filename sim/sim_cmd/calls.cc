// calls and sessions: what clients do.
#include <fmt/format.h>

#include <cstdio>

#include "doc/json.h"
#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"
#include "sim_control/faults.h"
#include "sim_state/functions.h"
#include "sim_state/sessions.h"

namespace ndp::sim_cmd {
namespace {

using sim_control::Simulation;
using sim_state::kFunctionCount;
using sim_state::kFunctionNames;

struct Options : MachineOptions {
  std::string function;
  bool json = false;
  bool reset = false;
};

void ResetCounters(sim_state::Machine& machine) {
  for (auto& count : machine.clients().calls) count.store(0);
  for (auto& client : machine.clients().clients) {
    for (auto& count : client.calls) count.store(0);
  }
}

void PrintText(const sim_state::Clients& all, const std::vector<sim_state::ClientCalls>& clients,
               int only) {
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    const std::uint64_t total = all.calls[i].load();
    if (only >= 0 ? static_cast<int>(i) != only : total == 0) continue;
    std::string by;
    for (const auto& client : clients) {
      if (client.calls[i] == 0) continue;
      by += fmt::format("{}{}[{}] {}", by.empty() ? "" : ", ", client.command, client.pid,
                        client.calls[i]);
    }
    fmt::print("{:<48} {:>8}  {}\n", kFunctionNames[i], total, by);
  }
}

template <typename Counts>
doc::Value CountsJson(const Counts& calls, int only) {
  doc::Value map = doc::Value::Map();
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    const std::uint64_t count = calls[i];
    if (only >= 0 ? static_cast<int>(i) != only : count == 0) continue;
    map.Set(kFunctionNames[i], count);
  }
  return map;
}

void PrintJson(const sim_state::Clients& all, const std::vector<sim_state::ClientCalls>& clients,
               int only) {
  doc::Value by = doc::Value::List();
  for (const auto& client : clients) {
    doc::Value entry = doc::Value::Map();
    entry.Set("pid", client.pid);
    entry.Set("command", client.command);
    entry.Set("alive", client.alive);
    entry.Set("calls", CountsJson(client.calls, only));
    by.Append(std::move(entry));
  }
  doc::Value out = doc::Value::Map();
  out.Set("calls", CountsJson(all.calls, only));
  out.Set("clients", std::move(by));
  fmt::print("{}\n", doc::ToJson(out));
}

Status RunCalls(Simulation& simulation, const Options& options) {
  int only = -1;
  if (!options.function.empty()) {
    NDP_TRY(only, sim_control::ParseFunction(options.function));
  }
  sim_state::Machine& machine = simulation.machine();
  const auto clients = sim_state::CallsByClient(machine);
  if (options.json) {
    PrintJson(machine.clients(), clients, only);
  } else {
    PrintText(machine.clients(), clients, only);
  }
  if (options.reset) ResetCounters(machine);
  return {};
}

std::vector<std::uint32_t> Attached(const Simulation& simulation,
                                    const sim_state::Session& session) {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t slot = 0; slot < sim_state::kMaxGpus; ++slot) {
    const bool known = simulation.control().gpus[slot].uuid[0] != '\0';
    if (known && (session.attached >> slot & 1U) != 0) slots.push_back(slot);
  }
  return slots;
}

Status RunSessions(Simulation& simulation, const Options& options) {
  doc::Value list = doc::Value::List();
  for (const auto& session : sim_state::OpenSessions(simulation.machine())) {
    const auto slots = Attached(simulation, session);
    doc::Value entry = doc::Value::Map();
    entry.Set("pid", session.pid);
    entry.Set("command", session.command);
    entry.Set("references", session.references);
    entry.Set("eventSets", session.event_sets);
    entry.Set("gpus", std::vector<doc::Value>(slots.begin(), slots.end()));
    list.Append(std::move(entry));
    if (!options.json) {
      fmt::print("pid {} ({}): {} references, {} event sets, GPUs {}\n", session.pid,
                 session.command, session.references, session.event_sets,
                 slots.empty() ? "none" : fmt::format("{}", fmt::join(slots, ",")));
    }
  }
  if (options.json) fmt::print("{}\n", doc::ToJson(list));
  return {};
}

}  // namespace

void AddCalls(Command& program) {
  auto command = program.Sub("calls", "How often each function was called, by whom");
  auto options = std::make_shared<Options>();
  AddDir(command, *options);
  command.Add("--function", options->function, "Only this one, also when it is 0");
  command.Flag("--json", options->json, "As one JSON object");
  command.Flag("--reset", options->reset, "Count from 0 afterwards");
  OnMachine(command, options, RunCalls);
}

void AddSessions(Command& program) {
  auto command = program.Sub("sessions", "Who has NVML initialised, and which GPUs open");
  auto options = std::make_shared<Options>();
  AddDir(command, *options);
  command.Flag("--json", options->json, "As a JSON array");
  OnMachine(command, options, RunSessions);
}

}  // namespace ndp::sim_cmd
