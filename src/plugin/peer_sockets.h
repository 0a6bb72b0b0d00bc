// Other instances that serve the same resource, seen by their sockets in the kubelet's folder.
//
// A kubelet of 1.37 keeps the last list of an instance that has ended: whoever is left must send
// its own again. So the end of a peer matters, whether its file goes or nobody accepts any more.
// Pure; one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace ndp::plugin {

class PeerSockets {
 public:
  // `made`: when the file was.
  void Appeared(std::string_view name, WallTime made) {
    peers_.insert_or_assign(std::string(name), Peer{.accepting = true, .made = made});
  }
  bool Knows(std::string_view name) const { return peers_.contains(name); }
  // When the file was made of a living peer that has ended by this.
  std::optional<WallTime> Vanished(std::string_view name);
  // The same for the result of a connect.
  std::optional<WallTime> Probed(std::string_view name, bool accepts);

  // Those whose life is worth a probe: a dead one stays dead until its file appears anew.
  std::vector<std::string> Living() const;
  bool any_living() const;

 private:
  struct Peer {
    bool accepting = true;
    WallTime made;
  };
  std::map<std::string, Peer, std::less<>> peers_;
};

}  // namespace ndp::plugin
