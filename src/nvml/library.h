// libnvidia-ml as loaded: its file and its functions. Immutable once open, so thread-safe. Closed
// (dlclose) with the last reference, never while a call is out, since every caller holds one.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "nvml/abi.h"
#include "nvml/driver.h"

namespace ndp::nvml {

// A function that the library may lack: then a call answers kFunctionNotFound.
template <typename... Args>
struct Function {
  const char* name = "";
  int (*address)(Args...) = nullptr;
};

class Library {
 public:
  static Result<std::shared_ptr<const Library>> Load(const std::filesystem::path& file);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::filesystem::path& file() const { return file_; }

  template <typename... Params, typename... Args>
  Reply<> Call(const Function<Params...>& function, Args... args) const {
    if (function.address == nullptr) {
      return std::unexpected(Failure{kFunctionNotFound, function.name, "function not found"});
    }
    const int status = function.address(args...);
    if (status == kSuccess) return {};
    return std::unexpected(Failure{status, function.name, ErrorText(status)});
  }

  Function<> init;
  Function<unsigned> init_with_flags;
  Function<> shutdown;
  Function<char*, unsigned> system_driver_version;
  Function<char*, unsigned> system_nvml_version;
  Function<int*> system_cuda_version;
  Function<unsigned*> device_count;
  Function<unsigned, abi::Device*> device_by_index;
  Function<const char*, abi::Device*> device_by_pci;
  Function<abi::Device, char*, unsigned> device_name;
  Function<abi::Device, char*, unsigned> device_uuid;
  Function<abi::Device, unsigned*> device_index;
  Function<abi::Device, unsigned*> device_minor;
  Function<abi::Device, abi::PciInfo*> device_pci;
  Function<abi::Device, abi::Memory*> device_memory;
  Function<abi::Device, int*, int*> device_compute_capability;
  Function<abi::Device, unsigned*> device_brand;
  Function<abi::Device, unsigned*> device_architecture;
  Function<abi::Device, abi::AddressingMode*> device_addressing_mode;
  Function<abi::Device, int*> device_compute_mode;
  Function<abi::Device, int> device_set_compute_mode;
  Function<abi::Device, unsigned*, unsigned*> device_mig_mode;
  Function<abi::Device, unsigned*> device_max_mig;
  Function<abi::Device, unsigned, abi::Device*> device_mig_by_index;
  Function<abi::Device, unsigned*> mig_gpu_instance_id;
  Function<abi::Device, unsigned*> mig_compute_instance_id;
  Function<abi::Device, abi::Attributes*> mig_attributes;
  Function<abi::Device, unsigned, abi::GpuInstanceProfileInfo*> gpu_instance_profile_info;
  Function<abi::Device, unsigned, abi::GpuInstance*> gpu_instance_by_id;
  Function<abi::GpuInstance, abi::GpuInstanceInfo*> gpu_instance_info;
  Function<abi::Device, abi::Device, int*> common_ancestor;
  Function<abi::Device, unsigned, int*> nvlink_state;
  Function<abi::Device, unsigned, abi::PciInfo*> nvlink_remote_pci;
  Function<abi::Device, unsigned, int*> nvlink_remote_type;
  Function<abi::EventSet*> event_set_create;
  Function<abi::EventSet> event_set_free;
  Function<abi::Device, std::uint64_t*> supported_event_types;
  Function<abi::Device, std::uint64_t, abi::EventSet> register_events;
  Function<abi::EventSet, abi::EventData*, unsigned> event_set_wait;
  Function<abi::Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows;
  Function<abi::Device, int*> retired_pages_pending;
  Function<abi::Device, int, int, std::uint64_t*> total_ecc_errors;
  Function<abi::Device, int, unsigned*> temperature;
  Function<abi::Device, int, unsigned*> temperature_threshold;
  Function<abi::Device, int, abi::FieldValue*> field_values;
  Function<abi::Device, unsigned*> pcie_replay_counter;
  Function<abi::Device, std::uint64_t*> total_energy;
  Function<abi::Device, abi::FabricInfo*> fabric_info;
  Function<abi::Device, abi::FabricInfoV2*> fabric_info_v;

 private:
  explicit Library(std::filesystem::path file) : file_(std::move(file)) {}
  void Resolve();
  std::string ErrorText(int status) const;

  std::filesystem::path file_;
  void* handle_ = nullptr;
  const char* (*error_string_)(int) = nullptr;
};

// Where libnvidia-ml.so.1 may be under a driver root, in order; the plain name (the system's own
// search) comes last.
std::vector<std::filesystem::path> LibraryCandidates(const std::filesystem::path& driver_root);

// The first candidate that exists, symbolic links resolved (an absolute link is looked for under
// the root as well); for the plain name, the name. kNotFound lists what was tried.
Result<std::filesystem::path> FindLibrary(const std::filesystem::path& driver_root);

}  // namespace ndp::nvml
