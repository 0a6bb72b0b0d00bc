// What was seen before and is not there now. A GPU that vanishes stays listed as Unhealthy (lost),
// held by a pod or not, until it returns: the node goes on saying 8 capacity, 7 allocatable.
#pragma once

#include "inventory/inventory.h"

namespace ndp::node {

// `fresh` with every GPU of `before` that it lacks (by UUID), marked as trouble. A GPU whose index
// now belongs to another keeps its place behind it. A NUMA node, once known, stays known. Pure.
inventory::Inventory KeepVanished(const inventory::Inventory& before, inventory::Inventory fresh);

}  // namespace ndp::node
