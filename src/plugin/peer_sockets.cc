#include "plugin/peer_sockets.h"

#include <algorithm>

namespace ndp::plugin {

std::optional<WallTime> PeerSockets::Vanished(std::string_view name) {
  const auto at = peers_.find(name);
  if (at == peers_.end()) return std::nullopt;
  const Peer peer = at->second;
  peers_.erase(at);
  return peer.accepting ? std::optional(peer.made) : std::nullopt;
}

std::optional<WallTime> PeerSockets::Probed(std::string_view name, bool accepts) {
  const auto at = peers_.find(name);
  if (at == peers_.end()) return std::nullopt;
  const bool ended = at->second.accepting && !accepts;
  at->second.accepting = accepts;
  return ended ? std::optional(at->second.made) : std::nullopt;
}

std::vector<std::string> PeerSockets::Living() const {
  std::vector<std::string> names;
  for (const auto& [name, peer] : peers_) {
    if (peer.accepting) names.push_back(name);
  }
  return names;
}

bool PeerSockets::any_living() const {
  return std::ranges::any_of(peers_, [](const auto& entry) { return entry.second.accepting; });
}

}  // namespace ndp::plugin
