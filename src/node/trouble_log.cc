#include "node/trouble_log.h"

#include <algorithm>

#include "base/ids.h"

namespace ndp::node {

void TroubleLog::Tell(const std::vector<Offer>& offers, const health::HealthBoard& board,
                      const std::set<std::string, std::less<>>& told) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> now;
  for (const Offer& offer : offers) {
    for (const plugin::ListedDevice& device : offer.resource.devices) {
      if (device.healthy || told.contains(device.reason)) continue;
      if (!board.Of(StripReplica(device.id)).healthy) continue;
      now[{offer.resource.name, device.reason}].push_back(device.id);
    }
  }
  for (const auto& [what, ids] : now) {
    if (const auto at = known_.find(what); at != known_.end()) {
      at->second = ids;
      continue;
    }
    if (!limit_.Allow("trouble")) continue;  // over the limit: later
    known_.emplace(what, ids);
    log::Warning("devices are not handed out", {{"resource", what.first},
                                                {"count", ids.size()},
                                                {"first", ids.front()},
                                                {"why", what.second}});
  }
  std::erase_if(known_, [&](const auto& known) {
    const auto& [what, ids] = known;
    if (now.contains(what)) return false;
    const bool worse = std::ranges::all_of(
        ids, [&](const std::string& id) { return !board.Of(StripReplica(id)).healthy; });
    if (!worse && limit_.Allow("trouble is over")) {
      log::Info("no device is held back any more for this",
                {{"resource", what.first}, {"why", what.second}});
    }
    return true;
  });
}

}  // namespace ndp::node
