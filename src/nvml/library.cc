#include "nvml/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>
#include <map>
#include <mutex>

namespace ndp::nvml {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libnvidia-ml.so.1";

// Libraries that are open, by path, with the inode they were opened at: dlopen gives the old file
// for a path that is still open, even if the file was replaced (a driver upgrade).
struct OpenFiles {
  std::mutex mutex;
  std::map<std::string, std::pair<dev_t, ino_t>> by_path;
};

OpenFiles& Opened() {
  static auto* files =
      new OpenFiles;  // leaked: workers may close a library while the process exits
  return *files;
}

bool ReplacedWhileOpen(const fs::path& file) {
  struct stat now{};
  if (::stat(file.c_str(), &now) != 0) return false;
  OpenFiles& files = Opened();
  const std::lock_guard lock(files.mutex);
  auto [at, fresh] = files.by_path.try_emplace(file.string(), now.st_dev, now.st_ino);
  const bool replaced = !fresh && at->second != std::pair(now.st_dev, now.st_ino);
  at->second = {now.st_dev, now.st_ino};
  return replaced;
}

void* OpenFile(const fs::path& file) {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
  if (!file.is_absolute() || !ReplacedWhileOpen(file)) return ::dlopen(file.c_str(), kFlags);
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* handle = ::dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), kFlags);
  ::close(fd);
  return handle;
}

template <typename F>
void Bind(void* handle, F& function, std::initializer_list<const char*> names) {
  function.name = *names.begin();
  for (const char* name : names) {
    if (void* address = ::dlsym(handle, name); address != nullptr) {
      function.name = name;
      function.address = reinterpret_cast<decltype(function.address)>(address);
      return;
    }
  }
}

}  // namespace

std::string Failure::Message() const { return fmt::format("{}: {} ({})", call, text, status); }

Error Failure::ToError() const {
  switch (status) {
    case kInvalidArgument:
      return {Code::kInvalidArgument, Message()};
    case kNotSupported:
    case kFunctionNotFound:
      return {Code::kUnsupported, Message()};
    case kNoPermission:
      return {Code::kPermissionDenied, Message()};
    case kNotFound:
    case kLibraryNotFound:
      return {Code::kNotFound, Message()};
    case kTimeout:
      return {Code::kDeadlineExceeded, Message()};
    default:
      return {Code::kUnavailable, Message()};
  }
}

Result<std::shared_ptr<const Library>> Library::Load(const fs::path& file) {
  std::shared_ptr<Library> library(new Library(file));
  library->handle_ = OpenFile(file);
  if (library->handle_ == nullptr) {
    const char* why = ::dlerror();
    return Error(Code::kNotFound,
                 fmt::format("load {}: {}", file.string(), why != nullptr ? why : "failed"));
  }
  library->Resolve();
  if (library->init.address == nullptr) {
    return Error(Code::kUnsupported, fmt::format("load {}: no nvmlInit in it", file.string()));
  }
  return std::shared_ptr<const Library>(std::move(library));
}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

std::string Library::ErrorText(int status) const {
  const char* text = error_string_ != nullptr ? error_string_(status) : nullptr;
  return text != nullptr ? text : "error";
}

void Library::Resolve() {
  void* h = handle_;
  error_string_ = reinterpret_cast<const char* (*)(int)>(::dlsym(h, "nvmlErrorString"));
  Bind(h, init, {"nvmlInit_v2", "nvmlInit"});
  Bind(h, init_with_flags, {"nvmlInitWithFlags"});
  Bind(h, shutdown, {"nvmlShutdown"});
  Bind(h, system_driver_version, {"nvmlSystemGetDriverVersion"});
  Bind(h, system_nvml_version, {"nvmlSystemGetNVMLVersion"});
  Bind(h, system_cuda_version,
       {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  Bind(h, device_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  Bind(h, device_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  Bind(h, device_by_pci, {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"});
  Bind(h, device_name, {"nvmlDeviceGetName"});
  Bind(h, device_uuid, {"nvmlDeviceGetUUID"});
  Bind(h, device_index, {"nvmlDeviceGetIndex"});
  Bind(h, device_minor, {"nvmlDeviceGetMinorNumber"});
  Bind(h, device_pci, {"nvmlDeviceGetPciInfo_v3"});
  Bind(h, device_memory, {"nvmlDeviceGetMemoryInfo"});
  Bind(h, device_compute_capability, {"nvmlDeviceGetCudaComputeCapability"});
  Bind(h, device_brand, {"nvmlDeviceGetBrand"});
  Bind(h, device_architecture, {"nvmlDeviceGetArchitecture"});
  Bind(h, device_addressing_mode, {"nvmlDeviceGetAddressingMode"});
  Bind(h, device_compute_mode, {"nvmlDeviceGetComputeMode"});
  Bind(h, device_set_compute_mode, {"nvmlDeviceSetComputeMode"});
  Bind(h, device_mig_mode, {"nvmlDeviceGetMigMode"});
  Bind(h, device_max_mig, {"nvmlDeviceGetMaxMigDeviceCount"});
  Bind(h, device_mig_by_index, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  Bind(h, mig_gpu_instance_id, {"nvmlDeviceGetGpuInstanceId"});
  Bind(h, mig_compute_instance_id, {"nvmlDeviceGetComputeInstanceId"});
  Bind(h, mig_attributes, {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"});
  Bind(h, gpu_instance_profile_info, {"nvmlDeviceGetGpuInstanceProfileInfo"});
  Bind(h, gpu_instance_by_id, {"nvmlDeviceGetGpuInstanceById"});
  Bind(h, gpu_instance_info, {"nvmlGpuInstanceGetInfo"});
  Bind(h, common_ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
  Bind(h, nvlink_state, {"nvmlDeviceGetNvLinkState"});
  Bind(h, nvlink_remote_pci, {"nvmlDeviceGetNvLinkRemotePciInfo_v2"});
  Bind(h, nvlink_remote_type, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  Bind(h, event_set_create, {"nvmlEventSetCreate"});
  Bind(h, event_set_free, {"nvmlEventSetFree"});
  Bind(h, supported_event_types, {"nvmlDeviceGetSupportedEventTypes"});
  Bind(h, register_events, {"nvmlDeviceRegisterEvents"});
  Bind(h, event_set_wait, {"nvmlEventSetWait_v2"});
  Bind(h, remapped_rows, {"nvmlDeviceGetRemappedRows"});
  Bind(h, retired_pages_pending, {"nvmlDeviceGetRetiredPagesPendingStatus"});
  Bind(h, total_ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  Bind(h, temperature, {"nvmlDeviceGetTemperature"});
  Bind(h, temperature_threshold, {"nvmlDeviceGetTemperatureThreshold"});
  Bind(h, field_values, {"nvmlDeviceGetFieldValues"});
  Bind(h, pcie_replay_counter, {"nvmlDeviceGetPcieReplayCounter"});
  Bind(h, total_energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  Bind(h, fabric_info, {"nvmlDeviceGetGpuFabricInfo"});
  Bind(h, fabric_info_v, {"nvmlDeviceGetGpuFabricInfoV"});
  // Before _v2 the struct ended at event_data; the instance fields then stay as the caller set
  // them.
  if (event_set_wait.address == nullptr) Bind(h, event_set_wait, {"nvmlEventSetWait"});
}

std::vector<fs::path> LibraryCandidates(const fs::path& driver_root) {
  std::vector<fs::path> all;
  for (const char* dir : {"usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
                          "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}) {
    all.push_back(driver_root / dir / kName);
  }
  all.emplace_back(kName);
  return all;
}

namespace {

// Follows links by hand, so that an absolute target is looked for under the driver root first (a
// root mounted from the host, or from a driver container).
fs::path ResolveUnder(const fs::path& root, fs::path path) {
  std::error_code ec;
  for (int depth = 0; depth < 16 && fs::is_symlink(path, ec); ++depth) {
    fs::path target = fs::read_symlink(path, ec);
    if (ec) break;
    if (target.is_absolute()) {
      const fs::path inside = root / target.relative_path();
      path = fs::exists(fs::symlink_status(inside, ec)) ? inside : target;
    } else {
      path = path.parent_path() / target;
    }
  }
  fs::path resolved = fs::weakly_canonical(path, ec);
  return ec ? path : resolved;
}

}  // namespace

Result<fs::path> FindLibrary(const fs::path& driver_root) {
  const std::vector<fs::path> candidates = LibraryCandidates(driver_root);
  for (const fs::path& candidate : candidates) {
    if (!candidate.is_absolute()) continue;
    std::error_code ec;
    const fs::path resolved = ResolveUnder(driver_root, candidate);
    if (fs::is_regular_file(resolved, ec)) return resolved;
  }
  return candidates.back();
}

}  // namespace ndp::nvml
