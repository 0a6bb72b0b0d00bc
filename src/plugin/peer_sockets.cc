#include "plugin/peer_sockets.h"

#include <algorithm>

namespace ndp::plugin {

bool PeerSockets::Vanished(std::string_view name) {
  const auto at = accepting_.find(name);
  if (at == accepting_.end()) return false;
  const bool ended = at->second;
  accepting_.erase(at);
  return ended;
}

bool PeerSockets::Probed(std::string_view name, bool accepts) {
  const auto at = accepting_.find(name);
  if (at == accepting_.end()) return false;
  const bool ended = at->second && !accepts;
  at->second = accepts;
  return ended;
}

std::vector<std::string> PeerSockets::Living() const {
  std::vector<std::string> names;
  for (const auto& [name, accepting] : accepting_) {
    if (accepting) names.push_back(name);
  }
  return names;
}

bool PeerSockets::any_living() const {
  return std::ranges::any_of(accepting_, [](const auto& entry) { return entry.second; });
}

}  // namespace ndp::plugin
