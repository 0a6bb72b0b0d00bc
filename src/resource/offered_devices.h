// From GPUs to devices and the resource each belongs to, before sharing: the MIG strategies and the
// names by pattern. Pure, any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/settings.h"
#include "inventory/inventory.h"
#include "resource/resource_set.h"
#include "resource/selection.h"

namespace ndp::resource {

// "nvidia.com/mig-1g.10gb.me" for "1g.10gb+me".
std::string MigResourceName(std::string_view profile);

struct OfferedDevices {
  std::map<std::string, std::vector<Device>> by_resource;  // by index each
  std::vector<NotOffered> not_offered;
  std::vector<std::string> warnings;
};

OfferedDevices OfferDevices(const config::Settings& settings, const inventory::Inventory& inventory,
                            const Selection& selection, const MigLayouts& layouts,
                            const MigLayouts* previous_scan);

}  // namespace ndp::resource
