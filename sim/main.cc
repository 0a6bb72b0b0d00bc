// ndp-sim: plays a GPU node for anything that speaks to NVIDIA's driver.
#include "sim_cmd/commands.h"

int main(int argc, char** argv) {
  using namespace ndp::sim_cmd;
  return RunProgram("ndp-sim", "Plays a GPU node: driver, faults, MIG. One folder is one machine.",
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
                    },
                    argc, argv);
}
