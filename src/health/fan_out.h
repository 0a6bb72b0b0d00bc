// Which devices a fault reaches. A device here is what has a UUID of its own: a GPU or a MIG
// device; replicas and resources follow from that. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inventory/inventory.h"

namespace ndp::health {

// The part of a GPU that a fault names: all of it, one GPU instance, or one compute instance.
struct Scope {
  std::optional<unsigned> gpu_instance;
  std::optional<unsigned> compute_instance;  // only with gpu_instance

  bool whole() const { return !gpu_instance; }
  bool Covers(unsigned gi, unsigned ci) const {
    return whole() || (gpu_instance == gi && (!compute_instance || compute_instance == ci));
  }
  auto operator<=>(const Scope&) const = default;
};

// The scope of an event. What only a reset of the whole GPU clears is the whole GPU's whatever the
// event says: pods on its siblings would block the reset. A GPU without MIG has no parts.
Scope ScopeOf(const inventory::Gpu& gpu, const nvml::Event& event, bool needs_reset);

// UUIDs: the GPU's own, which stands for a resource that serves it whole, then those of its MIG
// devices that the scope covers.
std::vector<std::string> AffectedDevices(const inventory::Gpu& gpu, const Scope& scope);

// " (GPU instance 2, compute instance 0)"; empty for the whole GPU.
std::string ScopeText(const Scope& scope);

}  // namespace ndp::health
