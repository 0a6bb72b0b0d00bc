// The sub-commands of ndp-sim: one file each. A function describes its sub-command to the program.
#pragma once

#include <string>

#include "base/result.h"
#include "sim_cmd/command.h"

namespace ndp::sim_cmd {

void AddUp(Command& program);
void AddStatus(Command& program);
void AddProfiles(Command& program);
void AddFault(Command& program);
void AddGpu(Command& program);
void AddFunction(Command& program);
void AddInit(Command& program);
void AddSet(Command& program);
void AddReset(Command& program);
void AddClear(Command& program);
void AddCalls(Command& program);
void AddSessions(Command& program);
void AddMig(Command& program);
void AddDriver(Command& program);
void AddBoot(Command& program);

// NVML's status by name (gpu-is-lost) or number.
Result<int> ParseNvmlStatus(const std::string& text);

}  // namespace ndp::sim_cmd
