#include "node/known_gpus.h"

#include <fmt/format.h>

#include <algorithm>

namespace ndp::node {
namespace {

std::string Why(const inventory::Inventory& fresh, unsigned index) {
  for (const inventory::BrokenGpu& broken : fresh.broken) {
    if (broken.index == index) return "lost: " + broken.reason;
  }
  return "lost: the driver does not list it any more";
}

}  // namespace

inventory::Inventory KeepVanished(const inventory::Inventory& before, inventory::Inventory fresh) {
  for (const inventory::Gpu& old : before.gpus) {
    const auto same = std::ranges::find(fresh.gpus, old.uuid(), &inventory::Gpu::uuid);
    if (same != fresh.gpus.end()) {
      // A GPU that goes is gone from /sys first: that is no news of its own for the kubelet.
      if (!same->numa_node) same->numa_node = old.numa_node;
      continue;
    }
    inventory::Gpu kept = old;
    kept.trouble = Why(fresh, old.index());
    for (inventory::MigDevice& mig : kept.mig) mig.trouble = kept.trouble;
    fresh.gpus.push_back(std::move(kept));
  }
  std::ranges::stable_sort(fresh.gpus, {}, [](const inventory::Gpu& gpu) { return gpu.index(); });
  return fresh;
}

}  // namespace ndp::node
