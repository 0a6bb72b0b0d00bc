// What strategy single serves: all GPUs without MIG, or all with one and the same MIG profile.
// While it is otherwise (a re-partition goes GPU by GPU) nothing is, so that no wrong slice is
// handed out under the right name. Pure, any thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "config/settings.h"
#include "inventory/inventory.h"
#include "resource/resource_set.h"

namespace ndp::resource {

// One GPU's entry of MigLayouts.
std::string LayoutOf(const inventory::Gpu& gpu);
MigLayouts LayoutsOf(const inventory::Inventory& inventory);

struct SingleDecision {
  std::optional<std::string> served;  // the layout whose GPUs are handed out
  std::string reason;                 // why those of any other layout are not
};

// `gpus` are positions in inventory.gpus. GPUs in trouble have no say, nor those whose MIG
// devices cannot be read: one of them must not take the others down.
SingleDecision DecideSingle(const inventory::Inventory& inventory, std::span<const int> gpus,
                            config::MigSinglePartial partial, const MigLayouts& layouts,
                            const MigLayouts* previous_scan);

}  // namespace ndp::resource
