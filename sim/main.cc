// ndp-sim: plays a GPU node for anything that speaks to NVIDIA's driver.
#include "sim_cmd/commands.h"
#include "sim_kubelet/subcommands.h"

int main(int argc, char** argv) {
  using namespace ndp::sim_cmd;
  namespace kubelet = ndp::sim_kubelet;
  return RunProgram("ndp-sim",
                    "Plays a GPU node: driver, faults, MIG, kubelet. One folder is one machine.",
                    NDP_VERSION,
                    {
                        // machines
                        AddUp,
                        AddStatus,
                        AddProfiles,
                        // what goes wrong, and what ends it
                        AddFault,
                        AddGpu,
                        AddFunction,
                        AddInit,
                        AddSet,
                        AddReset,
                        AddClear,
                        // what changes
                        AddMig,
                        AddDriver,
                        AddBoot,
                        // what clients do
                        AddCalls,
                        AddSessions,
                        // the kubelet, and all of it at once
                        kubelet::AddKubelet,
                        kubelet::AddKubeletCtl,
                        kubelet::AddRun,
                    },
                    argc, argv);
}
