// Which resources the node offers, and with which devices: an immutable snapshot, made by Build
// (resource/build.h) from Settings and Inventory. Health, lists and Allocate start from it.
//
// A shared device is one entry with a number of replicas, not one entry per replica: 56,000 ids
// as text are more memory than the whole program has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"

namespace ndp::resource {

// A GPU or a MIG device of a resource.
struct Device {
  std::string uuid;
  std::string index;       // as the user sees it: "3", a MIG device "3:1"
  unsigned gpu_index = 0;  // NVML's index of the GPU, or of the parent
  int gpu = 0;             // its position in Inventory::gpus, and so in the pair scores
  std::string gpu_uuid;    // of the GPU or the parent; faults name GPUs

  // MIG devices only.
  std::optional<unsigned> mig_slot;
  std::optional<unsigned> gpu_instance;
  std::optional<unsigned> compute_instance;
  std::string profile;  // "1g.10gb"

  std::optional<int> numa_node;
  std::vector<std::string> device_nodes;  // container paths
  int replicas = 0;                       // 0: not shared, else at least 2
  bool mps = false;                       // its replicas are clients of an MPS daemon
  std::string trouble;  // why it must not be handed out: it is listed Unhealthy; empty: it may

  bool mig() const { return mig_slot.has_value(); }
  bool shared() const { return replicas > 0; }
  // How many ids it has, and which; n from 0.
  int ids() const { return replicas > 0 ? replicas : 1; }
  std::string Id(int n) const { return shared() ? uuid + "::" + std::to_string(n) : uuid; }

  bool operator==(const Device&) const = default;
};

struct Resource {
  std::string name;  // "nvidia.com/gpu"
  config::SharingStrategy sharing = config::SharingStrategy::kNone;
  bool fail_requests_greater_than_one = false;
  std::vector<Device> devices;  // by index; an id's order is this, then its replica

  // "gpu": what its socket's file name is made of.
  std::string_view base_name() const;
  std::size_t ids() const;

  bool operator==(const Resource&) const = default;
};

// Something of the node that is in no resource.
struct NotOffered {
  std::string index;
  std::string uuid;
  std::string reason;
  bool operator==(const NotOffered&) const = default;
};

// By GPU UUID: "" without MIG, else the distinct profiles in order, as "1g.10gb,3g.40gb"; "none"
// in MIG mode without MIG devices.
using MigLayouts = std::map<std::string, std::string>;

struct ResourceSet {
  std::vector<Resource> resources;  // by name
  std::vector<NotOffered> not_offered;
  std::vector<std::string> warnings;  // of this node with these settings; say once

  const Resource* Find(std::string_view name) const;
  bool operator==(const ResourceSet&) const = default;
};

}  // namespace ndp::resource
