// Texts that several functions give.
#pragma once

#include <string>

#include "sim_nvml/abi.h"
#include "sim_nvml/call.h"

namespace ndp::sim_nvml {

void FillPci(const sim_state::PciAddress& pci, std::uint32_t pci_id, std::uint32_t subsystem_id,
             PciInfo* info);

// "1g.10gb", or "1c.2g.20gb" where the MIG device is only a part of its GPU instance.
std::string MigProfileName(const Target& target);

}  // namespace ndp::sim_nvml
