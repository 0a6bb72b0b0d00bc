// Settings and Inventory → ResourceSet. Pure, any thread.
#pragma once

#include "base/result.h"
#include "config/settings.h"
#include "inventory/inventory.h"
#include "resource/pair_scores.h"
#include "resource/resource_set.h"

namespace ndp::resource {

struct BuildContext {
  // The configuration is being loaded: what contradicts the machine (an unknown device, a count
  // that is too high, a list that is too long) is refused. Otherwise the machine has changed under
  // a good configuration: it is a warning, and all the rest is served. Without any GPU nothing can
  // be checked, so nothing is refused.
  bool loading = false;
  // What was offered before. Where a list has grown too long its devices stay, and those that came
  // later are not offered; null: nothing was.
  const ResourceSet* former = nullptr;
  // LayoutsOf (resource/mig_layout.h) the *scan* before the one that `inventory` comes from; null:
  // there was none. `mig-single-partial=majority` serves a layout that two scans have seen.
  const MigLayouts* previous_scan = nullptr;
};

// kInvalidArgument names key path and line of what is wrong and says what would be right.
Result<ResourceSet> Build(const config::Settings& settings, const inventory::Inventory& inventory,
                          const BuildContext& context);

// Over the positions of inventory.gpus. NVLinks count once they have been read; until then PCI and
// NUMA alone.
PairScores ScoresOf(const inventory::Inventory& inventory);

}  // namespace ndp::resource
