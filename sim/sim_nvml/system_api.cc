// Initialisation, versions, and finding GPUs.
#include <cstdio>
#include <string>

#include "sim_nvml/call.h"
#include "sim_state/functions.h"

namespace ndp::sim_nvml {
namespace {

constexpr unsigned kNoAttach = 2;
constexpr std::uint32_t kAllSlots = 0xFFFFFFFF;

Return DriverVersion(unsigned function, char* version, unsigned length, bool nvml) {
  std::shared_ptr<const SessionView> view;
  if (const Return status = BeginSystem(function, &view)) return status;
  const auto text = Library::Get().machine()->Read([&](const sim_state::Control& control) {
    return std::string(nvml ? control.nvml_version : control.driver_version);
  });
  return SetText(text, version, length);
}

// Unlike all else, the CUDA version can be asked for before init; without a driver it is 0.
Return CudaVersion(unsigned function, int* version) {
  Library& library = Library::Get();
  library.Count(function);
  if (const Return fault = library.Faults(function, -1)) return fault;
  const auto machine = library.machine();
  if (machine == nullptr || machine->control().driver_present == 0) return kDriverNotLoaded;
  return Set(version, machine->control().cuda_version);
}

Return Count(unsigned function, unsigned* count) {
  std::shared_ptr<const SessionView> view;
  if (const Return status = BeginSystem(function, &view)) return status;
  return Set(count, view->gpu_count);
}

bool Lost(const sim_state::Gpu& gpu) {
  return gpu.present == 0 || gpu.state == sim_state::GpuState::kLost;
}

// Looking a GPU up initialises it: it hangs with a hung GPU and fails with a lost one. One that
// wants a reset can still be found.
Return Open(std::uint32_t index, const SessionView& view, Handle* device) {
  Library& library = Library::Get();
  const std::uint32_t slot = view.order[index];
  const Return state = library.AwaitGpu(slot);
  if (state == kGpuIsLost) return state;
  library.Attach(1U << slot);
  return Set(device, library.ToHandle(HandleSlot::Kind::kGpu, index));
}

Return ByIndex(unsigned function, unsigned index, Handle* device) {
  Library& library = Library::Get();
  library.Count(function);
  std::shared_ptr<const SessionView> view;
  if (const Return status = library.Session(&view)) return status;
  const bool known = index < view->gpu_count;
  const int slot = known ? static_cast<int>(view->order[index]) : -1;
  if (const Return fault = library.Faults(function, slot)) return fault;
  if (!known || device == nullptr) return kInvalidArgument;
  return Open(index, *view, device);
}

// "00000000:07:00.0", "0000:07:00.0" and "07:00.0" in any case.
bool ParsePci(const char* text, sim_state::PciAddress* pci) {
  unsigned function = 0;
  int end = 0;
  const std::string whole(text);
  if (std::sscanf(text, "%x:%x:%x.%x%n", &pci->domain, &pci->bus, &pci->device, &function, &end) ==
          4 &&
      static_cast<std::size_t>(end) == whole.size()) {
    return function == 0;
  }
  pci->domain = 0;
  end = 0;
  return std::sscanf(text, "%x:%x.%x%n", &pci->bus, &pci->device, &function, &end) == 3 &&
         static_cast<std::size_t>(end) == whole.size() && function == 0;
}

Return ByPci(unsigned function, const char* bus_id, Handle* device) {
  Library& library = Library::Get();
  library.Count(function);
  std::shared_ptr<const SessionView> view;
  if (const Return status = library.Session(&view)) return status;
  sim_state::PciAddress wanted;
  int index = -1;
  if (bus_id != nullptr && ParsePci(bus_id, &wanted)) {
    index = library.machine()->Read([&](const sim_state::Control& control) {
      for (unsigned i = 0; i < view->gpu_count; ++i) {
        const auto& pci = control.gpus[view->order[i]].pci;
        if (pci.domain == wanted.domain && pci.bus == wanted.bus && pci.device == wanted.device) {
          return static_cast<int>(i);
        }
      }
      return -1;
    });
  }
  const int slot = index < 0 ? -1 : static_cast<int>(view->order[index]);
  if (const Return fault = library.Faults(function, slot)) return fault;
  if (bus_id == nullptr || device == nullptr) return kInvalidArgument;
  return index < 0 ? kNotFound : Open(static_cast<std::uint32_t>(index), *view, device);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

NVML_API int nvmlInit() { return Library::Get().Init(FunctionId("nvmlInit"), true); }
NVML_API int nvmlInit_v2() { return Library::Get().Init(FunctionId("nvmlInit_v2"), true); }
NVML_API int nvmlInitWithFlags(unsigned flags) {
  return Library::Get().Init(FunctionId("nvmlInitWithFlags"), (flags & kNoAttach) == 0);
}
NVML_API int nvmlShutdown() {
  Library& library = Library::Get();
  library.Count(FunctionId("nvmlShutdown"));
  if (const Return fault = library.Faults(FunctionId("nvmlShutdown"), -1)) return fault;
  return library.Shutdown();
}

NVML_API const char* nvmlErrorString(int status) {
  Library::Get().Count(FunctionId("nvmlErrorString"));
  switch (status) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kTimeout:
      return "Timeout";
    case 12:
      return "NVML Shared Library Not Found";
    case kFunctionNotFound:
      return "Function Not Found";
    case kGpuIsLost:
      return "GPU is lost";
    case kResetRequired:
      return "GPU requires reset";
    case 17:
      return "The operating system has blocked the request.";
    case kVersionMismatch:
      return "RM has detected an NVML/RM version mismatch.";
    case kInUse:
      return "In use by another client";
    case 20:
      return "Insufficient Memory";
    case kArgumentVersionMismatch:
      return "Argument version mismatch";
    case 27:
      return "Not ready";
    case 28:
      return "GPU not found";
    default:
      return "Unknown Error";
  }
}

NVML_API int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return DriverVersion(FunctionId("nvmlSystemGetDriverVersion"), version, length, false);
}
NVML_API int nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return DriverVersion(FunctionId("nvmlSystemGetNVMLVersion"), version, length, true);
}
NVML_API int nvmlSystemGetCudaDriverVersion(int* version) {
  return CudaVersion(FunctionId("nvmlSystemGetCudaDriverVersion"), version);
}
NVML_API int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return CudaVersion(FunctionId("nvmlSystemGetCudaDriverVersion_v2"), version);
}

NVML_API int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  std::shared_ptr<const SessionView> view;
  if (const Return status = BeginSystem(FunctionId("nvmlSystemGetProcessName"), &view)) {
    return status;
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/comm";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return kNotFound;
  char text[64] = {};
  const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  return SetText(std::string_view(text, size > 0 ? size - 1 : 0), name, length);
}

NVML_API int nvmlDeviceGetCount(unsigned* count) {
  return Count(FunctionId("nvmlDeviceGetCount"), count);
}
NVML_API int nvmlDeviceGetCount_v2(unsigned* count) {
  return Count(FunctionId("nvmlDeviceGetCount_v2"), count);
}
NVML_API int nvmlDeviceGetHandleByIndex(unsigned index, Handle* device) {
  return ByIndex(FunctionId("nvmlDeviceGetHandleByIndex"), index, device);
}
NVML_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* device) {
  return ByIndex(FunctionId("nvmlDeviceGetHandleByIndex_v2"), index, device);
}
NVML_API int nvmlDeviceGetHandleByPciBusId(const char* bus_id, Handle* device) {
  return ByPci(FunctionId("nvmlDeviceGetHandleByPciBusId"), bus_id, device);
}
NVML_API int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Handle* device) {
  return ByPci(FunctionId("nvmlDeviceGetHandleByPciBusId_v2"), bus_id, device);
}

// The driver walks over all GPUs, initialising each, until one has the UUID: one that has fallen
// off the bus makes the search fail, whatever it is for.
NVML_API int nvmlDeviceGetHandleByUUID(const char* uuid, Handle* device) {
  constexpr unsigned kFunction = FunctionId("nvmlDeviceGetHandleByUUID");
  std::shared_ptr<const SessionView> view;
  if (const Return status = BeginSystem(kFunction, &view)) return status;
  if (uuid == nullptr || device == nullptr) return kInvalidArgument;
  Library& library = Library::Get();
  library.Attach(kAllSlots);
  const std::string_view wanted(uuid);
  const auto machine = library.machine();
  for (unsigned i = 0; i < view->gpu_count; ++i) {
    if (Lost(machine->control().gpus[view->order[i]])) return kGpuIsLost;
  }
  for (unsigned i = 0; i < view->gpu_count; ++i) {
    const sim_state::Gpu& gpu = machine->control().gpus[view->order[i]];
    if (wanted == gpu.uuid) {
      if (const Return fault = library.Faults(kFunction, static_cast<int>(view->order[i]),
                                              Library::Play::kOfGpuOnly)) {
        return fault;
      }
      return Open(i, *view, device);
    }
    for (unsigned j = 0; j < sim_state::kMaxInstances; ++j) {
      const auto& mig = view->mig[i].devices[j];
      if (mig.used != 0 && wanted == mig.uuid) {
        return Set(device, library.ToHandle(HandleSlot::Kind::kMig, i, j));
      }
    }
  }
  return kNotFound;
}

NVML_API int nvmlDeviceGetHandleBySerial(const char* serial, Handle* device) {
  std::shared_ptr<const SessionView> view;
  if (const Return status = BeginSystem(FunctionId("nvmlDeviceGetHandleBySerial"), &view)) {
    return status;
  }
  if (serial == nullptr || device == nullptr) return kInvalidArgument;
  const auto machine = Library::Get().machine();
  Library::Get().Attach(kAllSlots);
  for (unsigned i = 0; i < view->gpu_count; ++i) {
    const sim_state::Gpu& gpu = machine->control().gpus[view->order[i]];
    if (Lost(gpu)) return kGpuIsLost;
    if (std::string_view(serial) == gpu.serial) return Open(i, *view, device);
  }
  return kNotFound;
}

// NOLINTEND(readability-identifier-naming)

}  // namespace ndp::sim_nvml
