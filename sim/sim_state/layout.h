// The state of one simulated machine: plain structs in a file that `ndp-sim` and every client of
// the simulated libnvidia-ml map. Readers and writers agree on it by magic and layout version only.
//
// The file has two parts. `Control` is written by ndp-sim and read by clients under a sequence
// lock; `Clients` (on pages of its own) is written by clients: who is there, what they hold open
// and how often they called what.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sim_state/functions.h"

namespace ndp::sim_state {

inline constexpr std::uint64_t kMagic = 0x314D'4953'5044'4Eu;  // "NDPSIM1"
inline constexpr std::uint32_t kLayoutVersion = 2;

inline constexpr unsigned kMaxGpus = 32;
inline constexpr unsigned kMaxLinks = 36;
inline constexpr unsigned kMaxInstances = 8;  // GPU instances, and MIG devices, of one GPU
inline constexpr unsigned kMaxRules = 128;
inline constexpr unsigned kMaxProcesses = 8;
inline constexpr unsigned kEventRing = 4096;  // a slower client loses the oldest, as with a driver
inline constexpr unsigned kMaxClients = 128;
inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;

enum class Platform : std::uint32_t { kNvml, kTegra, kWsl, kNone };

// How the driver's files lie in its root: as a distribution installs them, or as GKE does.
enum class DriverLayout : std::uint32_t { kPackages, kGke };

enum class GpuState : std::uint32_t { kOk, kLost, kResetRequired, kHung };

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
};

// One NVLink as its GPU sees it.
struct Link {
  std::uint32_t active = 0;
  std::uint32_t remote_type = 255;  // 0 GPU, 1 NPU, 2 switch, 255 unknown
  PciAddress remote;
  std::uint32_t remote_pci_id = 0;
};

struct GpuInstance {
  std::uint32_t used = 0;
  std::uint32_t id = 0;
  std::uint32_t profile = 0;  // number, not NVML's id field
  std::uint32_t start = 0;    // memory slices
  std::uint32_t size = 0;
};

// A compute instance; it is what NVML calls a MIG device. Its place in the array is its MIG index.
struct MigDevice {
  std::uint32_t used = 0;
  std::uint32_t gi_id = 0;
  std::uint32_t ci_id = 0;
  std::uint32_t ci_profile = 0;  // number
  std::uint32_t start = 0;       // compute slices of its GPU instance
  std::uint32_t size = 0;
  char uuid[48] = {};
};

struct MigLayout {
  GpuInstance instances[kMaxInstances];
  MigDevice devices[kMaxInstances];
};

struct Process {
  std::uint32_t pid = 0;
  std::uint32_t gi_id = kNoInstance;
  std::uint32_t ci_id = kNoInstance;
  std::uint32_t unused = 0;
  std::uint64_t memory = 0;
};

struct Fabric {
  std::uint32_t state = 0;  // 0 not supported, 1 not started, 2 in progress, 3 completed
  std::uint32_t status = 0;
  std::uint32_t clique = 0;
  std::uint32_t health_mask = 0;
  std::uint8_t cluster[16] = {};
};

// What a health check reads. -1 in a field that says so = the driver answers NOT_SUPPORTED.
struct Health {
  std::int32_t recovery_action = 0;  // or -1
  std::uint32_t remap_supported = 1;
  std::uint32_t remap_correctable = 0;
  std::uint32_t remap_uncorrectable = 0;
  std::uint32_t remap_pending = 0;
  std::uint32_t remap_failure = 0;
  std::int32_t retired_pending = -1;              // or -1
  std::int32_t ecc_mode = 1;                      // or -1
  std::uint64_t ecc[2][2] = {};                   // [corrected, uncorrected][volatile, aggregate]
  std::int32_t temperature = 34;                  // or -1
  std::int32_t thresholds[4] = {-1, -1, -1, -1};  // shutdown, slowdown, memory max, GPU max; or -1
  std::uint32_t pcie_replay = 0;
  std::uint32_t power_milliwatt = 70000;
  std::uint32_t gpu_utilization = 0;
  std::uint32_t memory_utilization = 0;
  std::int64_t energy_since_ns = 0;  // CLOCK_REALTIME at which `energy_millijoule` was true
  std::uint64_t energy_millijoule = 0;
};

struct Gpu {
  std::uint32_t present = 0;
  GpuState state = GpuState::kOk;
  char uuid[48] = {};
  char name[96] = {};
  char serial[32] = {};
  std::uint32_t minor = 0;
  PciAddress pci;
  std::uint32_t pci_id = 0;  // device id << 16 | vendor
  std::uint32_t pci_subsystem_id = 0;
  std::uint32_t pci_class = 0x030200;
  std::int32_t numa_node = -1;
  std::int32_t memory_numa_node = -1;  // of GPU memory that is a NUMA node (Grace); or -1
  std::int32_t addressing_mode = 0;    // 0 none, 1 HMM, 2 ATS; or -1
  std::uint32_t cc_major = 0;
  std::uint32_t cc_minor = 0;
  std::uint32_t brand = 0;
  std::uint32_t architecture = 0;
  std::uint32_t compute_mode = 0;
  std::uint64_t memory_total = 0;
  std::uint64_t memory_reserved = 0;
  std::uint64_t memory_used = 0;
  std::uint64_t event_types = 0;  // 0: events are not supported
  std::int32_t mig_model = -1;    // index into the tables of mig_model.h; -1: no MIG
  std::uint32_t mig_current = 0;
  std::uint32_t mig_pending = 0;
  std::uint32_t mig_no_permission = 0;  // MIG queries answer NO_PERMISSION
  MigLayout mig;
  Fabric fabric;
  Health health;
  Process processes[kMaxProcesses];
};

struct Event {
  std::uint64_t type = 0;
  std::uint64_t data = 0;
  std::uint32_t gpu = 0;  // slot
  std::uint32_t gi_id = kNoInstance;
  std::uint32_t ci_id = kNoInstance;
  std::uint32_t unused = 0;
};

enum class RuleKind : std::uint32_t { kLatency, kError, kHang, kMissing };

// A fault of one function, of one GPU or of all; -1 = any.
struct Rule {
  std::int32_t function = -1;
  std::int32_t gpu = -1;
  RuleKind kind = RuleKind::kLatency;
  std::int32_t code = 0;
  std::int64_t latency_ns = 0;
  std::int64_t until_ns = 0;  // CLOCK_MONOTONIC; 0 = until cleared
};

// What nvmlInit answers besides success.
struct InitFault {
  std::int32_t code = 0;        // 0: none
  std::uint32_t from_call = 0;  // fails from this call on, counted since the fault was set
  std::int64_t until_ns = 0;    // CLOCK_MONOTONIC; 0 = until cleared
};

struct Control {
  std::uint64_t magic = 0;
  std::uint32_t layout_version = 0;
  std::uint32_t size = 0;      // of the whole file
  std::uint64_t identity = 0;  // of this machine; inode numbers come again

  std::atomic<std::uint32_t> sequence{0};  // odd while a writer is at work
  std::atomic<std::uint32_t> change{0};    // futex word: counts changes
  std::atomic<std::uint32_t> retired{0};   // a newer state file has taken this one's place

  Platform platform = Platform::kNvml;
  DriverLayout driver_layout = DriverLayout::kPackages;
  char driver_root[64] = {};  // on the machine; empty: "/"
  std::uint32_t driver_present = 1;
  std::uint32_t driver_epoch = 0;     // sessions of an older epoch are dead
  std::uint32_t module_mismatch = 0;  // the loaded module is not of the library's version
  std::uint32_t gone_status = 9;      // what a living session answers without a driver: 9 or 1
  std::uint32_t imex_channels = 0;
  std::uint32_t mig_generation = 0;  // part of new MIG UUIDs
  std::uint32_t cuda_version = 0;    // 12080 = 12.8
  char driver_version[32] = {};
  char nvml_version[32] = {};
  char profile[64] = {};

  InitFault init_fault;
  std::uint32_t rule_count = 0;
  Rule rules[kMaxRules];

  std::uint32_t gpu_count = 0;                     // entries of `order`
  std::uint32_t order[kMaxGpus] = {};              // enumeration index → slot
  std::uint8_t topology[kMaxGpus][kMaxGpus] = {};  // nvmlDeviceGetTopologyCommonAncestor's levels
  Gpu gpus[kMaxGpus];                              // by slot
  Link links[kMaxGpus][kMaxLinks];

  std::atomic<std::uint64_t> event_head{0};  // events ever sent; entry n is at n % kEventRing
  Event events[kEventRing];
};

// One client process. Alive sessions are told by a lock on the state file (sessions.h), which the
// kernel drops with the process; the rest is bookkeeping that outlives it.
struct Client {
  std::atomic<std::uint32_t> used{0};
  std::atomic<std::uint32_t> pid{0};
  std::atomic<std::uint64_t> start_time{0};  // of the process, in clock ticks: pids come again
  char command[16] = {};
  std::atomic<std::uint32_t> references{0};  // nvmlInit less nvmlShutdown
  std::atomic<std::uint32_t> attached{0};    // bit per GPU slot
  std::atomic<std::uint32_t> event_sets{0};
  std::atomic<std::uint32_t> calls[kFunctionCount] = {};
};

struct Clients {
  std::atomic<std::uint64_t> init_calls{0};  // since the init fault was set
  std::atomic<std::uint64_t> calls[kFunctionCount] = {};
  std::atomic<std::uint32_t> next_victim{0};
  Client clients[kMaxClients];
};

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t PageAligned(std::size_t size) {
  return (size + kPage - 1) & ~(kPage - 1);
}
inline constexpr std::size_t kClientsOffset = PageAligned(sizeof(Control));
inline constexpr std::size_t kStateSize = kClientsOffset + PageAligned(sizeof(Clients));

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(kMaxGpus <= 32, "Client::attached has a bit per GPU");

}  // namespace ndp::sim_state
