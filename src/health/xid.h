// What an XID means for the GPU that reported it. Pure; any thread once built.
//
// Defaults follow NVIDIA's public catalogue
// (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, looked at in 2026-11);
// docs/health.md lists each default beside the catalogue's recommended action.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace ndp::health {

using config::XidClass;

// "ignore", "application", "driver", "fault", "reset".
std::string_view XidClassName(XidClass xid_class);

// NVIDIA's name of an XID in a few words ("GPU has fallen off the bus"); empty for unknown ones.
std::string_view XidMeaning(std::uint64_t xid);

// The class before any setting.
XidClass CatalogueClass(std::uint64_t xid);

// GSP timeouts: queries of such a GPU may hang for 45 s each, so it is left alone at first.
bool IsGspTimeout(std::uint64_t xid);

class XidTable {
 public:
  explicit XidTable(config::Health::Xids settings) : settings_(std::move(settings)) {}

  // The class with all settings applied: policy, then the lists of health.xids, then
  // DP_DISABLE_HEALTHCHECKS, then DP_ENABLE_HEALTHCHECKS.
  XidClass Classify(std::uint64_t xid) const;

  // False: no event can mark anything, so none is waited for.
  bool watches_events() const;
  // DP_DISABLE_HEALTHCHECKS=all: what is no XID (a recovery action) marks nothing either.
  bool all_disabled() const { return settings_.disabled.all; }

 private:
  config::Health::Xids settings_;
};

}  // namespace ndp::health
