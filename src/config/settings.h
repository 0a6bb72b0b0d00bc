// What the programs do: the file, the environment and the command line resolved into one value.
//
// Plain data, copied freely, never changed once built: whoever holds a `const Settings` may read it
// on any thread. Every field has been validated, as far as that is possible without looking at
// the machine; what needs the machine (counts, selectors that match nothing) is checked by
// `resource`, which gets a `Where` with each entry so that its message can name key path and line.
// An optional is left only where absence means something.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "config/selector.h"

namespace ndp::config {

enum class MigStrategy { kNone, kSingle, kMixed };
// What `single` serves while not all GPUs have the same MIG layout: nothing, or what most have.
enum class MigSinglePartial { kNone, kMajority };
enum class DeviceListStrategy { kEnvvar, kVolumeMounts, kCdiAnnotations, kCdiCri };
enum class DeviceIdStrategy { kUuid, kIndex };
enum class AllocationPolicy { kDistributed, kPacked };
enum class DiscoveryStrategy { kAuto, kNvml, kTegra, kVfio };

// What every program knows.
struct Common {
  std::string config_file;  // empty: none
  bool strict_config = false;
  MigStrategy mig_strategy = MigStrategy::kNone;
  bool fail_on_init_error = true;
  DiscoveryStrategy device_discovery_strategy = DiscoveryStrategy::kAuto;
  std::string driver_root = "/";                      // on the host
  std::string dev_root = "/";                         // on the host; the driver root unless set
  std::string driver_root_ctr_path = "/driver-root";  // where this process sees the driver root
  std::string host_root = "/";                        // where this process sees the host
  std::string node_config_label;                      // empty: off
};

struct Plugin {
  MigSinglePartial mig_single_partial = MigSinglePartial::kNone;
  bool pass_device_specs = false;
  std::set<DeviceListStrategy> device_list_strategies = {DeviceListStrategy::kEnvvar};
  DeviceIdStrategy device_id_strategy = DeviceIdStrategy::kUuid;
  bool gdrcopy_enabled = false;
  bool gds_enabled = false;
  bool mofed_enabled = false;
  AllocationPolicy shared_devices_allocation_policy = AllocationPolicy::kDistributed;
  bool enable_resource_naming = false;
  std::string mps_root;  // on the host; empty: none
  std::string kubelet_socket =
      "/var/lib/kubelet/device-plugins/kubelet.sock";  // empty: no Register
  // Where our own sockets are: the folder of kubelet_socket, or of its default where that is empty.
  std::string socket_dir = "/var/lib/kubelet/device-plugins";
  Duration rescan_interval = std::chrono::seconds(30);

  bool uses(DeviceListStrategy strategy) const { return device_list_strategies.contains(strategy); }
  bool uses_cdi() const {
    return uses(DeviceListStrategy::kCdiAnnotations) || uses(DeviceListStrategy::kCdiCri);
  }
  // Whether anything but CDI is on: only then device specs, mounts and the variable are sent.
  bool uses_non_cdi() const {
    return uses(DeviceListStrategy::kEnvvar) || uses(DeviceListStrategy::kVolumeMounts);
  }
};

// Which devices of a resource an entry of `sharing` is about.
struct AllDevices {  // all that no other entry names
  bool operator==(const AllDevices&) const = default;
};
struct DeviceCount {  // the lowest indices that no other entry names
  int count = 1;
  bool operator==(const DeviceCount&) const = default;
};
struct DeviceList {
  std::vector<DeviceSelector> devices;  // GpuIndex, MigIndex, DeviceUuid or PciBusId
  bool operator==(const DeviceList&) const = default;
};
using SharedDevices = std::variant<AllDevices, DeviceCount, DeviceList>;

struct SharedResource {
  Where where;
  std::string name;        // with its prefix: nvidia.com/gpu
  std::string offered_as;  // the name after `rename` or `.shared`; `name` where neither applies
  SharedDevices devices;   // AllDevices unless enable-resource-naming
  Where devices_where;     // of the `devices` key; `where` if absent
  int replicas = 1;        // 1: not shared
  bool operator==(const SharedResource&) const = default;
};

enum class SharingStrategy { kNone, kTimeSlicing, kMps };

// The one section in force: mps if it replicates anything, else timeSlicing.
struct Sharing {
  SharingStrategy strategy = SharingStrategy::kNone;  // kNone: no entry has more than one replica
  bool rename_by_default = false;
  bool fail_requests_greater_than_one = false;
  std::vector<SharedResource> resources;
  bool operator==(const Sharing&) const = default;
};

// `resources`: a device whose name matches is offered under `resource`. First match wins; what
// matches nothing keeps the default name. Empty unless enable-resource-naming.
struct NameRule {
  Where where;
  std::string pattern;   // WildcardMatch: of the product name, or the MIG profile
  std::string resource;  // with its prefix: nvidia.com/a100
  bool operator==(const NameRule&) const = default;
};
struct NameRules {
  std::vector<NameRule> gpus;
  std::vector<NameRule> mig;
  bool operator==(const NameRules&) const = default;
};

// `devices`: which GPUs exist for us at all. A GPU counts if some include selector matches it (or
// there is none) and no exclude selector does.
struct Devices {
  std::vector<DeviceSelector> include;
  std::vector<DeviceSelector> exclude;
  bool operator==(const Devices&) const = default;
};

enum class XidPolicy { kCatalogue, kUpstream };
enum class XidClass { kIgnore, kApplication, kDriver, kFault, kReset };

// DP_DISABLE_HEALTHCHECKS or DP_ENABLE_HEALTHCHECKS.
struct XidSelection {
  bool all = false;
  std::set<std::uint64_t> xids;
  bool Contains(std::uint64_t xid) const { return all || xids.contains(xid); }
  bool operator==(const XidSelection&) const = default;
};

struct Health {
  struct Xids {
    XidPolicy policy = XidPolicy::kCatalogue;
    std::map<std::uint64_t, XidClass> moved;  // by the five lists of health.xids
    XidSelection disabled;                    // .all: no event and no poll marks anything
    XidSelection enabled;                     // wins over everything disabled
    bool operator==(const Xids&) const = default;
  };
  struct Checks {  // of the polls
    bool lost = true;
    bool row_remap = true;
    bool recovery_action = true;
    bool retired_pages = false;
    bool temperature = true;
    bool fabric = true;
    bool compute_mode = true;
    bool operator==(const Checks&) const = default;
  };
  struct Polling {
    // False also where DP_DISABLE_HEALTHCHECKS is all and the key is not written.
    bool enabled = true;
    Duration interval = std::chrono::seconds(30);
    Checks checks;
    bool operator==(const Polling&) const = default;
  };
  struct Recovery {
    bool enabled = true;
    Duration hold_off = std::chrono::seconds(60);
    int probes = 3;
    Duration probe_interval = std::chrono::seconds(10);
    bool release_faulty_gpu = false;
    bool operator==(const Recovery&) const = default;
  };
  Xids xids;
  Polling polling;
  Recovery recovery;
  Duration grace = std::chrono::seconds(30);
  Duration watchdog = std::chrono::seconds(60);
  std::string state_file = "/var/lib/kubelet/device-plugins/.ndp-health";
  std::string fences_file = "/etc/ndp/fences.yaml";
  bool exit_on_stale_injection = true;
  bool operator==(const Health&) const = default;
};

struct Imex {
  std::vector<int> channel_ids;  // [] or [0]
  bool required = false;
  bool operator==(const Imex&) const = default;
};

enum class CdiFeature {
  kDisableNvsandboxutils,
  kEnableExplicitDriverLibraries,
  kEnableCoherentAnnotations,
  kNoAdditionalGidsForDeviceNodes,
  kDisableIpcDiscoverer,
  kDisableMultipleCsvDevices,
};

struct Cdi {
  std::string spec_dir = "/var/run/cdi";
  std::string annotation_prefix = "cdi.k8s.io/";  // ends with its slash
  std::string hook_path = "/usr/bin/nvidia-ctk";  // on the host
  std::set<CdiFeature> features;
  bool disable_all_hooks = false;
  std::set<std::string> disabled_hooks;  // create-symlinks, update-ldcache, …
  bool operator==(const Cdi&) const = default;
};

// Where the web server listens: a unix socket or a TCP port; neither: off.
struct ListenAddress {
  std::string unix_path;
  std::string host;  // empty: all addresses
  std::uint16_t port = 0;
  bool off() const { return unix_path.empty() && port == 0; }
  bool operator==(const ListenAddress&) const = default;
};

struct Web {
  ListenAddress listen_address;
  bool operator==(const Web&) const = default;
};

// gpu-feature-discovery.
struct Gfd {
  bool oneshot = false;
  bool no_timestamp = false;
  std::optional<Duration> sleep_interval = std::chrono::seconds(60);  // nullopt: infinite
  // Empty: standard output.
  std::string output_file = "/etc/kubernetes/node-feature-discovery/features.d/gfd";
  bool keep_output_file = false;
  std::string machine_type_file = "/sys/class/dmi/id/product_name";
  bool use_node_feature_api = true;
  double kube_api_qps = 5;
  int kube_api_burst = 10;
  bool operator==(const Gfd&) const = default;
};

// Who and where we are in the cluster: for gpu-feature-discovery and config-manager.
struct Cluster {
  std::string kubeconfig;  // empty: the pod's service account
  std::string node_name;
  std::string pod_namespace;
  std::string pod_name;
  bool operator==(const Cluster&) const = default;
};

enum class FallbackStrategy { kNamed, kSingle, kEmpty };

// config-manager.
struct ConfigManager {
  bool oneshot = false;
  std::string node_label = "nvidia.com/device-plugin.config";
  std::string config_file_srcdir;
  std::string config_file_dst;
  std::string default_config;
  std::vector<FallbackStrategy> fallback_strategies;  // in order
  bool send_signal = true;
  int signal = 1;
  std::string process_to_signal = "nvidia-device-plugin";
  bool operator==(const ConfigManager&) const = default;
};

struct Settings {
  Common common;
  Plugin plugin;
  Sharing sharing;
  NameRules names;
  Devices devices;
  Health health;
  Imex imex;
  Cdi cdi;
  Web web;
  Gfd gfd;
  Cluster cluster;
  ConfigManager manager;
  log::Options log;
};

}  // namespace ndp::config
