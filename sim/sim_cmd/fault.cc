#include "sim_control/faults.h"

#include <vector>

#include "base/text.h"
#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"

namespace ndp::sim_cmd {
namespace {

struct Options : MachineOptions {
  std::optional<std::uint64_t> xid;
  std::string event;
  std::uint64_t data = 0;
  std::uint32_t gi = sim_state::kNoInstance;
  std::uint32_t ci = sim_state::kNoInstance;
  std::uint32_t count = 1;
};

Status Run(sim_control::Simulation& simulation, const Options& options) {
  sim_state::Event event{
      .type = 0x8, .data = options.data, .gi_id = options.gi, .ci_id = options.ci};
  if (options.xid) {
    event.data = *options.xid;
  } else if (!options.event.empty()) {
    NDP_TRY(event.type, sim_control::ParseEventType(options.event));
  } else {
    return Error(Code::kInvalidArgument, "one of --xid and --event is needed");
  }
  std::vector<sim_state::Event> events;
  for (const std::string_view gpu : Split(options.gpu, ',')) {
    NDP_TRY(event.gpu, simulation.FindGpu(gpu));
    events.push_back(event);
  }
  return sim_control::SendEvents(simulation, events, options.count);
}

}  // namespace

void AddFault(Command& program) {
  auto command = program.Sub("fault", "Send an event to those who have registered for it");
  auto options = std::make_shared<Options>();
  AddDir(command, *options);
  command
      .Add("--gpu", options->gpu,
           "The GPU: its number when the machine came up (its minor), its UUID, or its PCI bus id; "
           "several, with commas between them, have it at one stroke")
      .Required();
  const Option xid = command.Add("--xid", options->xid, "An XID error of this number");
  command
      .Add("--event", options->event,
           "Another type of event: " + sim_control::EventTypeNames() + ", or a number")
      .Excludes(xid);
  command.Add("--data", options->data, "The event's data, with --event").Excludes(xid);
  command.Add("--gi", options->gi, "GPU instance id (default: not attributed)");
  command.Add("--ci", options->ci, "Compute instance id (default: not attributed)");
  command.Add("--count", options->count, "Send it so many times").Range(1, 1000000);
  OnMachine(command, options, Run);
}

}  // namespace ndp::sim_cmd
