#include "sim_nvml/text.h"

#include <cstdio>

#include "sim_state/mig_model.h"

namespace ndp::sim_nvml {

void FillPci(const sim_state::PciAddress& pci, std::uint32_t pci_id, std::uint32_t subsystem_id,
             PciInfo* info) {
  *info = {};
  info->domain = pci.domain;
  info->bus = pci.bus;
  info->device = pci.device;
  info->pci_device_id = pci_id;
  info->pci_subsystem_id = subsystem_id;
  std::snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04X:%02X:%02X.0",
                pci.domain & 0xFFFFU, pci.bus & 0xFFU, pci.device & 0xFFU);
  std::snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", pci.domain, pci.bus,
                pci.device);
}

std::string MigProfileName(const Target& target) {
  const auto& model = sim_state::MigModels()[static_cast<std::size_t>(target.gpu.mig_model)];
  const auto* profile = sim_state::FindProfile(model, target.instance().profile);
  if (profile == nullptr) return {};
  std::string name(profile->name);
  const std::uint32_t slices = target.device().size;
  if (slices != profile->slices) name = std::to_string(slices) + "c." + name;
  return name;
}

}  // namespace ndp::sim_nvml
