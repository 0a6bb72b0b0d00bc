// A session on a system that has GPUs and no NVML (Tegra, WSL): it knows none of them, so that all
// who ask a Driver need not know of such systems. Thread-safe.
#pragma once

#include <filesystem>

#include "nvml/driver.h"

namespace ndp::nvml {

class NoDriver final : public Driver {
 public:
  Reply<DriverInfo> Info() override { return DriverInfo{}; }
  Reply<unsigned> DeviceCount() override { return 0U; }
  Reply<Gpu> ReadGpu(unsigned index) override;
  Reply<Identity> Identify(const std::string& pci_bus_id) override;
  Reply<std::uint64_t> UsedMemory(const std::string& pci_bus_id) override;
  Reply<HealthSample> Sample(const std::string& pci_bus_id) override;
  Reply<int> RecoveryAction(const std::string& pci_bus_id) override;
  Reply<int> CommonAncestor(const std::string& a, const std::string& b) override;
  Reply<std::vector<NvLink>> ActiveLinks(const std::string& pci_bus_id) override;
  Reply<void> SetComputeMode(const std::string& pci_bus_id, int mode) override;
  Reply<std::unique_ptr<EventSource>> OpenEvents() override;
  // Empty: nothing was loaded.
  const std::filesystem::path& library() const override { return none_; }

 private:
  std::filesystem::path none_;
};

}  // namespace ndp::nvml
