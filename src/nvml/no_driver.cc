#include "nvml/no_driver.h"

namespace ndp::nvml {
namespace {

std::unexpected<Failure> Unknown(const char* call) {
  return std::unexpected(Failure{kNotFound, call, "this system has no NVML"});
}

}  // namespace

Reply<Gpu> NoDriver::ReadGpu(unsigned /*index*/) { return Unknown("ReadGpu"); }

Reply<Driver::Identity> NoDriver::Identify(const std::string& /*pci_bus_id*/) {
  return Unknown("Identify");
}

Reply<std::uint64_t> NoDriver::UsedMemory(const std::string& /*pci_bus_id*/) {
  return Unknown("UsedMemory");
}

Reply<HealthSample> NoDriver::Sample(const std::string& /*pci_bus_id*/) {
  return Unknown("Sample");
}

Reply<int> NoDriver::RecoveryAction(const std::string& /*pci_bus_id*/) {
  return Unknown("RecoveryAction");
}

Reply<int> NoDriver::CommonAncestor(const std::string& /*a*/, const std::string& /*b*/) {
  return Unknown("CommonAncestor");
}

Reply<std::vector<NvLink>> NoDriver::ActiveLinks(const std::string& /*pci_bus_id*/) {
  return Unknown("ActiveLinks");
}

Reply<void> NoDriver::SetComputeMode(const std::string& /*pci_bus_id*/, int /*mode*/) {
  return Unknown("SetComputeMode");
}

Reply<std::unique_ptr<EventSource>> NoDriver::OpenEvents() { return Unknown("OpenEvents"); }

}  // namespace ndp::nvml
