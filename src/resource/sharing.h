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

// Each device goes to at most one entry: lists first, then counts take the lowest indices that are
// left, then `all` the rest. With `strict` an entry that names what is not there is refused, else
// it is a warning; two entries that name one device are refused always.
Result<SharedOut> ShareDevices(const config::Sharing& sharing,
                               const inventory::Inventory& inventory,
                               std::map<std::string, std::vector<Device>> by_resource, bool strict);

}  // namespace ndp::resource
