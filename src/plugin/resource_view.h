// One resource as its server shows it to the kubelet: an immutable snapshot with everything that an
// RPC needs worked out beforehand, so that answering makes no NVML call, reads no file and waits
// for no lock. Built on the loop, read by any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "resource/device_pool.h"
#include "resource/pair_scores.h"
#include "resource/shared_policy.h"

namespace ndp::plugin {

// How containers get their devices: the settings, resolved for one resource.
struct AllocateOptions {
  bool envvar = true;
  bool volume_mounts = false;
  bool cdi_annotations = false;
  bool cdi_cri = false;

  bool ids_by_index = false;  // device-id-strategy
  // The GPUs' enumeration has changed since the units' indices were read: the runtime would take
  // another GPU, so nothing is handed out by index until the rescan is done.
  bool index_in_doubt = false;

  bool pass_device_specs = false;
  std::string dev_root = "/";              // on the host
  std::vector<std::string> control_nodes;  // container paths; those that exist

  bool gdrcopy = false;
  bool gds = false;
  bool mofed = false;
  std::vector<int> imex_channels;

  std::string mps_root;  // on the host; for units that are shared by MPS
  bool fail_requests_greater_than_one = false;

  std::string cdi_vendor = "k8s.device-plugin.nvidia.com";
  // Qualified names after those of the units: IMEX channels, gdrcopy, gds, mofed with a spec.
  std::vector<std::string> cdi_additional;
  std::string cdi_annotation_prefix = "cdi.k8s.io/";

  bool operator==(const AllocateOptions&) const = default;
};

// One NVML device of the resource: a GPU or a MIG device, behind one id or several replicas.
struct Unit {
  std::string uuid;
  std::string index;  // "3", "3:1"
  int gpu = 0;        // position of the (parent) GPU in the pair scores
  int replicas = 0;   // 0: not shared
  bool mig = false;
  bool mps = false;                       // its replicas are clients of an MPS daemon
  bool cdi = true;                        // runtimes can resolve its CDI name
  std::vector<std::string> device_nodes;  // container paths

  bool operator==(const Unit&) const = default;
};

// One line of the kubelet's list. Ids of no unit may be among them: a device that has gone while a
// pod holds it stays listed, Unhealthy.
struct ListedDevice {
  std::string id;
  bool healthy = true;
  std::string reason;  // why it is not
  std::optional<int> numa_node;
  bool operator==(const ListedDevice&) const = default;
};

struct Resource {
  std::string name;         // "nvidia.com/gpu"
  std::vector<Unit> units;  // by index: the order of every answer
  std::vector<ListedDevice> devices;
  std::shared_ptr<const resource::PairScores> scores;  // null: all pairs alike
  resource::SharedPolicy policy = resource::SharedPolicy::kDistributed;
  AllocateOptions options;

  // Scores by identity: they are made once per inventory.
  bool operator==(const Resource&) const = default;
};

class ResourceView {
 public:
  explicit ResourceView(Resource resource);
  ResourceView(const ResourceView&) = delete;
  ResourceView& operator=(const ResourceView&) = delete;

  const Resource& resource() const { return resource_; }
  const std::string& name() const { return resource_.name; }
  const std::vector<Unit>& units() const { return resource_.units; }
  const std::vector<ListedDevice>& devices() const { return resource_.devices; }
  const AllocateOptions& options() const { return resource_.options; }
  const resource::DevicePool& pool() const { return pool_; }
  const resource::PairScores& scores() const;
  resource::SharedPolicy policy() const { return resource_.policy; }

  // Listed, and not Healthy.
  bool Unhealthy(std::string_view id) const { return unhealthy_.contains(id); }

  // What Allocate puts together, per unit and for all.
  struct DeviceSpec {
    std::string container_path;
    std::string host_path;
  };
  struct Mount {
    std::string container_path;
    std::string host_path;
  };
  struct PreparedUnit {
    std::string visible_id;  // uuid or index
    std::string cdi_name;    // qualified
    Mount list_mount;        // of the volume-mounts strategy
    std::vector<DeviceSpec> specs;
  };
  struct Prepared {
    std::vector<std::pair<std::string, std::string>> envs;  // the same for every container
    std::string mps_pipe;                                   // these two with an MPS unit only
    std::vector<Mount> mps_mounts;
    std::vector<Mount> imex_mounts;
    std::vector<DeviceSpec> control_specs;
    std::vector<DeviceSpec> imex_specs;
    std::vector<std::string> cdi_names;  // after those of the units
  };
  const PreparedUnit& unit(std::size_t i) const { return prepared_[i]; }
  const Prepared& prepared() const { return common_; }

 private:
  PreparedUnit Prepare(const Unit& unit) const;
  void PrepareCommon();

  const Resource resource_;
  resource::DevicePool pool_;
  std::unordered_set<std::string_view> unhealthy_;  // into resource_
  std::vector<PreparedUnit> prepared_;
  Prepared common_;
};

// Whether a kubelet would see a difference between the two lists (order included).
bool SameList(const ResourceView& a, const ResourceView& b);

}  // namespace ndp::plugin
