// Other instances that serve the same resource, seen by their sockets in the kubelet's folder.
//
// A kubelet of 1.37 keeps the last list of an instance that has ended: whoever is left must send
// its own again. So the end of a peer matters, whether its file goes or nobody accepts any more.
// Pure; one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ndp::plugin {

class PeerSockets {
 public:
  void Appeared(std::string_view name) { accepting_.insert_or_assign(std::string(name), true); }
  bool Knows(std::string_view name) const { return accepting_.contains(name); }
  // Whether a living peer has ended by this.
  bool Vanished(std::string_view name);
  // The result of a connect. Whether a living peer has ended by this.
  bool Probed(std::string_view name, bool accepts);

  // Those whose life is worth a probe: a dead one stays dead until its file appears anew.
  std::vector<std::string> Living() const;
  bool any_living() const;

 private:
  std::map<std::string, bool, std::less<>> accepting_;
};

}  // namespace ndp::plugin
