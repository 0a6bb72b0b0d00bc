// The real driver: libnvidia-ml.so.1 found under a driver root and loaded with dlopen.
#pragma once

#include <filesystem>
#include <memory>

#include "base/mutex.h"
#include "nvml/driver.h"
#include "nvml/library.h"

namespace ndp::nvml {

// Thread-safe.
class DlLoader final : public Loader {
 public:
  explicit DlLoader(std::filesystem::path driver_root) : driver_root_(std::move(driver_root)) {}
  Result<std::shared_ptr<Driver>> Open() override;
  // For the next Open.
  void set_driver_root(std::filesystem::path driver_root);
  std::filesystem::path driver_root() const;
  // For the next Open: false opens a session that holds those GPUs alone that are looked up in it,
  // where the library can do so. A held GPU cannot be reset.
  void set_attaching(bool attaching);

 private:
  mutable Mutex mutex_;
  std::filesystem::path driver_root_ NDP_GUARDED_BY(mutex_);
  bool attaching_ NDP_GUARDED_BY(mutex_) = true;
};

// Implementation of Driver over a loaded library: made by DlLoader, split over dl_driver*.cc.
class DlDriver final : public Driver, public std::enable_shared_from_this<DlDriver> {
 public:
  // Calls nvmlInit; the destructor nvmlShutdown.
  static Reply<std::shared_ptr<DlDriver>> Start(std::shared_ptr<const Library> library,
                                                bool attaching = true);
  ~DlDriver() override;

  Reply<DriverInfo> Info() override;
  Reply<unsigned> DeviceCount() override;
  Reply<Gpu> ReadGpu(unsigned index) override;
  Reply<Identity> Identify(const std::string& pci_bus_id) override;
  Reply<std::uint64_t> UsedMemory(const std::string& pci_bus_id) override;
  Reply<HealthSample> Sample(const std::string& pci_bus_id) override;
  Reply<int> RecoveryAction(const std::string& pci_bus_id) override;
  Reply<int> CommonAncestor(const std::string& a, const std::string& b) override;
  Reply<std::vector<NvLink>> ActiveLinks(const std::string& pci_bus_id) override;
  Reply<void> SetComputeMode(const std::string& pci_bus_id, int mode) override;
  Reply<std::unique_ptr<EventSource>> OpenEvents() override;
  const std::filesystem::path& library() const override { return library_->file(); }

  const Library& lib() const { return *library_; }
  // A GPU without PCI info is named "#<index>" and found by it.
  Reply<abi::Device> Find(const std::string& pci_bus_id) const;

 private:
  explicit DlDriver(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  Reply<int> RecoveryAction(abi::Device device) const;
  std::optional<Fabric> ReadFabric(abi::Device device) const;
  void ReadMig(abi::Device device, Gpu& gpu) const;
  Reply<MigDevice> ReadMigDevice(abi::Device gpu, abi::Device mig, unsigned slot,
                                 std::vector<std::pair<unsigned, unsigned>>& profile_numbers) const;

  std::shared_ptr<const Library> library_;
};

}  // namespace ndp::nvml
