#include "base/duration.h"
#include "sim_cmd/commands.h"
#include "sim_cmd/with_machine.h"
#include "sim_control/faults.h"
#include "sim_control/lifecycle.h"

namespace ndp::sim_cmd {
namespace {

struct Options : MachineOptions {
  std::string error;
  std::uint32_t from_call = 1;
  std::string duration;
  bool mismatch = false;
  bool ok = false;
};

Status Run(sim_control::Simulation& simulation, const Options& options) {
  if (options.ok) {
    NDP_TRY(sim_control::VersionMismatch(simulation, false));
    return sim_control::SetInitFault(simulation, 0, 0, std::nullopt);
  }
  if (options.mismatch) return sim_control::VersionMismatch(simulation, true);
  NDP_TRY(const int code, ParseNvmlStatus(options.error));
  std::optional<Duration> duration;
  if (!options.duration.empty()) {
    NDP_TRY(duration, ParseDuration(options.duration).Context("--for"));
  }
  return sim_control::SetInitFault(simulation, code, options.from_call, duration);
}

}  // namespace

void AddInit(Command& program) {
  auto command = program.Sub("init", "Make nvmlInit fail");
  auto options = std::make_shared<Options>();
  AddDir(command, *options);
  command.ExactlyOne(
      {command.Add("--error", options->error, "It returns this status: a name or number"),
       command.Flag("--version-mismatch", options->mismatch,
                    "The loaded module is of another version than the library"),
       command.Flag("--ok", options->ok, "End what was set")});
  command.Add("--from-call", options->from_call, "From the nth call from now (default 1)")
      .Range(1, 1000000);
  command.Add("--for", options->duration, "Only for this long, e.g. 5s");
  OnMachine(command, options, Run);
}

}  // namespace ndp::sim_cmd
