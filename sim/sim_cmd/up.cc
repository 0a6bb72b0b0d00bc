#include <cstdio>
#include <memory>

#include "sim_cmd/commands.h"
#include "sim_control/simulation.h"
#include "sim_profile/profile.h"

namespace ndp::sim_cmd {
namespace {

struct Options {
  std::string dir;
  std::string profile;
  std::uint32_t gpus = 0;
  std::string seed;
  std::string nvml;
};

Status Run(const Options& options) {
  sim_control::UpOptions up{.dir = options.dir,
                            .profile = {},
                            .gpus = options.gpus,
                            .seed = options.seed,
                            .nvml = options.nvml};
  auto profile = sim_profile::LoadProfile(options.profile);
  // To the user a profile that does not exist is bad input as much as a wrong one.
  if (!profile.ok()) return Error(Code::kInvalidArgument, profile.error().message());
  up.profile = *std::move(profile);
  const bool has_nvml =
      up.profile.platform == sim_profile::Platform::kNvml || !up.profile.gpus.empty();
  if (up.nvml.empty() && has_nvml) {
    NDP_TRY(up.nvml, sim_control::FindNvmlLibrary());
  }
  NDP_TRY(const auto simulation, sim_control::Simulation::Up(up));
  std::printf("%s: %s is up, driver root %s\n", options.dir.c_str(), up.profile.name.c_str(),
              simulation.driver_root().c_str());
  return {};
}

}  // namespace

void AddUp(Command& program) {
  auto command = program.Sub("up", "Make a machine: a driver root and its state");
  auto options = std::make_shared<Options>();
  command.Add("--dir", options->dir, "Folder of the machine").Required();
  command
      .Add("--profile", options->profile,
           "A built-in profile (ndp-sim profiles lists them) or a .yaml file")
      .Required();
  command.Add("--gpus", options->gpus, "Only the first so many GPUs").Range(1, 32);
  command.Add("--seed", options->seed,
              "Any text: machines of different seeds have different UUIDs");
  command.Add("--nvml", options->nvml,
              "The simulated libnvidia-ml.so.1 (default: the one beside this program)");
  command.OnRun([options] { return Run(*options); });
}

void AddProfiles(Command& program) {
  auto command = program.Sub("profiles", "List the built-in machines");
  command.OnRun([]() -> Status {
    for (const auto& built_in : sim_profile::BuiltInProfiles()) {
      NDP_TRY(const auto profile, sim_profile::ParseProfile(built_in.name, built_in.yaml));
      std::printf("%-18s %s\n", profile.name.c_str(), profile.description.c_str());
    }
    return {};
  });
}

}  // namespace ndp::sim_cmd
