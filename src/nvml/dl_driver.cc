#include "nvml/dl_driver.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace ndp::nvml {
namespace {

// NVML terminates what it writes; a driver that did not must not make us read on.
template <std::size_t N>
std::string Text(std::array<char, N>& buffer) {
  buffer.back() = '\0';
  return buffer.data();
}

// A value that may be missing.
template <typename T, typename... Params, typename... Args>
std::optional<T> Optional(const Library& lib, const Function<Params...>& function, Args... args) {
  T value{};
  if (!lib.Call(function, args..., &value)) return std::nullopt;
  return value;
}

}  // namespace

void DlLoader::set_driver_root(std::filesystem::path driver_root) {
  const MutexLock lock(mutex_);
  driver_root_ = std::move(driver_root);
}

std::filesystem::path DlLoader::driver_root() const {
  const MutexLock lock(mutex_);
  return driver_root_;
}

void DlLoader::set_attaching(bool attaching) {
  const MutexLock lock(mutex_);
  attaching_ = attaching;
}

Result<std::shared_ptr<Driver>> DlLoader::Open() {
  std::filesystem::path root;
  bool attaching = true;
  {
    const MutexLock lock(mutex_);
    root = driver_root_;
    attaching = attaching_;
  }
  NDP_TRY(const std::filesystem::path file, FindLibrary(root));
  auto library = Library::Load(file);
  if (!library) {
    std::string tried;
    for (const auto& candidate : LibraryCandidates(root)) {
      if (!tried.empty()) tried += ", ";
      tried += candidate.string();
    }
    return std::move(library).error().WithContext(
        fmt::format("no NVIDIA driver library (tried {}; --driver-root-ctr-path says where the "
                    "driver's root is)",
                    tried));
  }
  auto driver = DlDriver::Start(*library, attaching);
  if (!driver) {
    return Error(Code::kUnavailable,
                 fmt::format("{}: {}", file.string(), driver.error().Message()));
  }
  return std::shared_ptr<Driver>(*std::move(driver));
}

Reply<std::shared_ptr<DlDriver>> DlDriver::Start(std::shared_ptr<const Library> library,
                                                 bool attaching) {
  constexpr unsigned kNoAttach = 2;
  Reply<> started = std::unexpected(Failure{.status = kFunctionNotFound, .call = {}, .text = {}});
  if (!attaching) started = library->Call(library->init_with_flags, kNoAttach);
  // A library that knows no flags holds them all.
  if (!started && started.error().status == kFunctionNotFound) {
    started = library->Call(library->init);
  }
  if (!started) return std::unexpected(started.error());
  return std::shared_ptr<DlDriver>(new DlDriver(std::move(library)));
}

DlDriver::~DlDriver() { (void)library_->Call(library_->shutdown); }

Reply<DriverInfo> DlDriver::Info() {
  std::array<char, 96> buffer{};
  DriverInfo info;
  if (auto got = lib().Call(lib().system_driver_version, buffer.data(), 80U); !got) {
    return std::unexpected(got.error());
  }
  info.driver_version = Text(buffer);
  buffer.fill('\0');
  if (lib().Call(lib().system_nvml_version, buffer.data(), 80U)) info.nvml_version = Text(buffer);
  info.cuda_version = Optional<int>(lib(), lib().system_cuda_version).value_or(0);
  return info;
}

Reply<unsigned> DlDriver::DeviceCount() {
  unsigned count = 0;
  if (auto got = lib().Call(lib().device_count, &count); !got) return std::unexpected(got.error());
  return count;
}

Reply<abi::Device> DlDriver::Find(const std::string& pci_bus_id) const {
  abi::Device device = nullptr;
  Reply<> got;
  if (pci_bus_id.starts_with('#')) {
    const auto index = static_cast<unsigned>(ParseUnsigned(pci_bus_id.substr(1)).value_or(~0U));
    got = lib().Call(lib().device_by_index, index, &device);
  } else {
    got = lib().Call(lib().device_by_pci, pci_bus_id.c_str(), &device);
  }
  if (!got) return std::unexpected(got.error());
  return device;
}

Reply<Gpu> DlDriver::ReadGpu(unsigned index) {
  abi::Device device = nullptr;
  if (auto got = lib().Call(lib().device_by_index, index, &device); !got) {
    return std::unexpected(got.error());
  }
  Gpu gpu{.index = index};
  std::array<char, 97> buffer{};
  if (auto got = lib().Call(lib().device_uuid, device, buffer.data(), 96U); !got) {
    return std::unexpected(got.error());
  }
  gpu.uuid = Text(buffer);
  abi::PciInfo pci{};
  if (auto got = lib().Call(lib().device_pci, device, &pci); got) {
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    gpu.pci_bus_id = NormalizePciBusId(pci.bus_id).value_or("");
  } else if (got.error().lost() || got.error().status == kResetRequired) {
    return std::unexpected(got.error());
  }
  if (gpu.pci_bus_id.empty()) gpu.pci_bus_id = fmt::format("#{}", index);
  buffer.fill('\0');
  if (lib().Call(lib().device_name, device, buffer.data(), 96U)) gpu.name = Text(buffer);
  gpu.minor = Optional<unsigned>(lib(), lib().device_minor, device);
  if (auto memory = Optional<abi::Memory>(lib(), lib().device_memory, device)) {
    gpu.memory_bytes = memory->total;
  }
  int major = 0;
  int minor = 0;
  if (lib().Call(lib().device_compute_capability, device, &major, &minor)) {
    gpu.compute_capability = {major, minor};
  }
  gpu.brand = Optional<unsigned>(lib(), lib().device_brand, device);
  gpu.architecture = Optional<unsigned>(lib(), lib().device_architecture, device);
  abi::AddressingMode mode{.version = abi::kAddressingModeV1, .value = 0};
  if (lib().Call(lib().device_addressing_mode, device, &mode)) {
    gpu.addressing_mode = static_cast<int>(mode.value);
  }
  gpu.fabric = ReadFabric(device);
  ReadMig(device, gpu);
  return gpu;
}

Reply<Driver::Identity> DlDriver::Identify(const std::string& pci_bus_id) {
  auto device = Find(pci_bus_id);
  if (!device) return std::unexpected(device.error());
  std::array<char, 97> buffer{};
  if (auto got = lib().Call(lib().device_uuid, *device, buffer.data(), 96U); !got) {
    return std::unexpected(got.error());
  }
  Identity identity{.index = 0, .uuid = Text(buffer)};
  if (auto got = lib().Call(lib().device_index, *device, &identity.index); !got) {
    return std::unexpected(got.error());
  }
  return identity;
}

std::optional<Fabric> DlDriver::ReadFabric(abi::Device device) const {
  abi::FabricInfoV2 v2{};
  v2.version = abi::kFabricInfoV2;
  Fabric fabric;
  const auto take = [&fabric](const auto& info) {
    fabric.state = static_cast<FabricState>(info.state);
    fabric.status = static_cast<int>(info.status);
    std::copy(std::begin(info.cluster_uuid), std::end(info.cluster_uuid),
              fabric.cluster_uuid.begin());
    fabric.clique = info.clique;
  };
  if (lib().Call(lib().fabric_info_v, device, &v2)) {
    take(v2);
    return fabric;
  }
  abi::FabricInfo v1{};
  if (!lib().Call(lib().fabric_info, device, &v1)) return std::nullopt;
  take(v1);
  return fabric;
}

Reply<void> DlDriver::SetComputeMode(const std::string& pci_bus_id, int mode) {
  auto device = Find(pci_bus_id);
  if (!device) return std::unexpected(device.error());
  return lib().Call(lib().device_set_compute_mode, *device, mode);
}

}  // namespace ndp::nvml
