// What the program may ask the NVIDIA driver: values in, values out, never handles, since handles
// do not outlive a session and are reused by the driver. Thread-safe, as NVML is; any call may
// block for seconds, or for ever, so only worker threads make them.
//
// Implementations: DlDriver (libnvidia-ml.so.1 by dlopen), FakeDriver (tests,
// testing/fake_driver.h). A GPU is named by its PCI bus id ("0000:07:00.0"): looking one up by UUID
// fails for all when any GPU is lost.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace ndp::nvml {

// Status numbers of NVML that something is decided by.
enum Status : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kVersionMismatch = 18,
  kUnknown = 999,
};

// A call that did not succeed: which, and how.
struct Failure {
  int status = kUnknown;
  std::string call;  // "nvmlDeviceGetName"
  std::string text;  // the driver's own words for the status

  bool unsupported() const { return status == kNotSupported || status == kFunctionNotFound; }
  bool lost() const { return status == kGpuIsLost; }
  bool driver_gone() const { return status == kUninitialized || status == kDriverNotLoaded; }
  // "nvmlDeviceGetName: GPU is lost (15)"
  std::string Message() const;
  Error ToError() const;
};

template <typename T = void>
using Reply = std::expected<T, Failure>;

struct DriverInfo {
  std::string driver_version;  // "570.86.15"
  std::string nvml_version;
  int cuda_version = 0;  // 12080 is 12.8; 0 where unknown
};

struct MigMode {
  bool current = false;
  bool pending = false;
  bool operator==(const MigMode&) const = default;
};

struct MigAttributes {
  unsigned multiprocessors = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  unsigned encoders = 0;
  unsigned jpeg_engines = 0;
  unsigned ofa_engines = 0;
  unsigned gpu_instance_slices = 0;
  unsigned compute_instance_slices = 0;
  std::uint64_t memory_mib = 0;
  bool operator==(const MigAttributes&) const = default;
};

struct MigDevice {
  unsigned slot = 0;  // NVML's MIG index; slots may have gaps
  std::string uuid;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  // The GPU instance profile *number* (facts of NVML: 7 is 1 REV1, …); nullopt where the walk over
  // the profiles found no match.
  std::optional<unsigned> gpu_instance_profile;
  std::optional<MigAttributes> attributes;
  bool operator==(const MigDevice&) const = default;
};

enum class FabricState { kNotSupported = 0, kNotStarted = 1, kInProgress = 2, kCompleted = 3 };

struct Fabric {
  FabricState state = FabricState::kNotSupported;
  int status = 0;
  std::array<std::uint8_t, 16> cluster_uuid{};
  unsigned clique = 0;
  bool operator==(const Fabric&) const = default;
};

// One GPU as a scan sees it. Only index, uuid and pci_bus_id are always there.
struct Gpu {
  unsigned index = 0;      // NVML's enumeration index
  std::string uuid;        // "GPU-…"
  std::string pci_bus_id;  // normalised: "0000:07:00.0"
  std::optional<unsigned> minor;
  std::optional<std::string> name;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::pair<int, int>> compute_capability;
  std::optional<unsigned> brand;
  std::optional<unsigned> architecture;
  std::optional<int> addressing_mode;  // 0 none, 1 HMM, 2 ATS
  std::optional<MigMode> mig_mode;     // nullopt: the GPU knows no MIG
  unsigned mig_slots = 0;
  std::vector<MigDevice> mig_devices;
  // Why MIG could not be read although the GPU is in MIG mode (NO_PERMISSION, …).
  std::optional<Failure> mig_failure;
  std::optional<Fabric> fabric;
};

enum class LinkEnd { kGpu, kNpu, kSwitch, kUnknown };

struct NvLink {
  unsigned link = 0;
  LinkEnd end = LinkEnd::kUnknown;
  std::string remote_pci_bus_id;  // normalised; empty where unknown
};

// What a health poll reads of one GPU. A value that the driver does not support is absent.
struct HealthSample {
  std::optional<int> recovery_action;  // field 230
  struct RemappedRows {
    unsigned correctable = 0;
    unsigned uncorrectable = 0;
    bool pending = false;
    bool failure = false;
  };
  std::optional<RemappedRows> remapped_rows;
  std::optional<bool> retired_pages_pending;
  std::optional<std::uint64_t> volatile_uncorrected_ecc;
  std::optional<std::uint64_t> volatile_corrected_ecc;
  std::optional<std::uint64_t> pcie_replays;
  std::optional<std::uint64_t> total_energy_mj;
  std::optional<unsigned> temperature;           // °C
  std::optional<unsigned> temperature_shutdown;  // °C
  std::optional<int> compute_mode;               // 0 default, 2 prohibited, 3 exclusive process
  std::optional<Fabric> fabric;
  std::vector<Failure> failures;  // calls that failed for another reason than NOT_SUPPORTED
};

// Event types (bits).
inline constexpr std::uint64_t kEventSingleBitEcc = 0x1;
inline constexpr std::uint64_t kEventDoubleBitEcc = 0x2;
inline constexpr std::uint64_t kEventXid = 0x8;
inline constexpr std::uint64_t kEventDramRetirementFailure = 0x800;
inline constexpr std::uint64_t kEventFatalPoison = 0x2000;
inline constexpr std::uint64_t kEventGpuUnavailable = 0x4000;
inline constexpr std::uint64_t kEventRecoveryAction = 0x8000;

struct Event {
  std::uint64_t type = 0;
  std::uint64_t data = 0;                // the XID where type is kEventXid
  std::string pci_bus_id;                // of the GPU it names; empty where NVML named none we know
  std::optional<unsigned> gpu_instance;  // absent where not attributable
  std::optional<unsigned> compute_instance;
};

// One event set. Wait blocks; used by one thread. Freed on destruction.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Registers `wanted` masked by what the GPU supports; returns the mask registered.
  virtual Reply<std::uint64_t> Register(const std::string& pci_bus_id, std::uint64_t wanted) = 0;
  // nullopt: nothing happened within `timeout`.
  virtual Reply<std::optional<Event>> Wait(std::chrono::milliseconds timeout) = 0;
};

// A loaded library with one session open on it. The session is closed on destruction; an
// EventSource keeps its Driver alive.
class Driver {
 public:
  virtual ~Driver() = default;

  virtual Reply<DriverInfo> Info() = 0;
  virtual Reply<unsigned> DeviceCount() = 0;
  // All of one GPU; fails only where index, UUID or PCI bus id cannot be had.
  virtual Reply<Gpu> ReadGpu(unsigned index) = 0;
  // The identity alone, by PCI bus id: {index, uuid}. Cheap; the probe of health checks.
  struct Identity {
    unsigned index = 0;
    std::string uuid;
  };
  virtual Reply<Identity> Identify(const std::string& pci_bus_id) = 0;
  virtual Reply<std::uint64_t> UsedMemory(const std::string& pci_bus_id) = 0;
  virtual Reply<HealthSample> Sample(const std::string& pci_bus_id) = 0;
  // Field 230; fails as unsupported on drivers before about 565.
  virtual Reply<int> RecoveryAction(const std::string& pci_bus_id) = 0;

  virtual Reply<int> CommonAncestor(const std::string& a, const std::string& b) = 0;
  // Active links only.
  virtual Reply<std::vector<NvLink>> ActiveLinks(const std::string& pci_bus_id) = 0;

  virtual Reply<void> SetComputeMode(const std::string& pci_bus_id, int mode) = 0;
  virtual Reply<std::unique_ptr<EventSource>> OpenEvents() = 0;

  // The file that was loaded, for logs and to notice its replacement.
  virtual const std::filesystem::path& library() const = 0;
};

// Opens sessions. Thread-safe.
class Loader {
 public:
  virtual ~Loader() = default;
  // kNotFound: no library (the message lists every path tried and the loader's own words);
  // kUnavailable: there, but nvmlInit fails (the message has its status).
  virtual Result<std::shared_ptr<Driver>> Open() = 0;
};

}  // namespace ndp::nvml
