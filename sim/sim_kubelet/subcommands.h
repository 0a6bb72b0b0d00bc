// The sub-commands that this room adds to ndp-sim (see sim_cmd/commands.h).
#pragma once

#include "sim_cmd/command.h"

namespace ndp::sim_kubelet {

void AddKubelet(sim_cmd::Command& program);
void AddKubeletCtl(sim_cmd::Command& program);
void AddRun(sim_cmd::Command& program);

}  // namespace ndp::sim_kubelet
