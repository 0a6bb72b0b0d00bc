// The `sharing` section applied to the devices of a node. Pure, any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "inventory/inventory.h"
#include "resource/resource_set.h"

namespace ndp::resource {

struct SharedOut {
  std::map<std::string, Resource> resources;
  // The entry that shares devices under a name, for messages about the resource.
  std::map<std::string, const config::SharedResource*> entries;
  std::vector<std::string> warnings;
};

// What is an error; the rest is a warning, and what makes sense is shared.
struct SharingChecks {
  bool refuse_contradictions = false;  // a device that is named twice, MPS beside no MPS
  bool refuse_unknown = false;         // devices that are not there, counts that are too high
};

// Each device goes to at most one entry: lists first, then counts take the lowest indices that are
// left, then `all` the rest.
Result<SharedOut> ShareDevices(const config::Sharing& sharing,
                               const inventory::Inventory& inventory,
                               std::map<std::string, std::vector<Device>> by_resource,
                               const SharingChecks& checks);

}  // namespace ndp::resource
