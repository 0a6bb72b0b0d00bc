// Who serves which resource, as the kubelet's device manager keeps it: both manners of double
// registration, their flaws included, since plugins must live with them. Pure, one thread.
//
// The life of a client: Begin (Register came in), then Connected or Failed (the dial back), later
// StreamEnded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace ndp::sim_kubelet {

enum class Like {
  k134,  // 1.34 to 1.36: one client a resource, the newer replaces the older
  k137,  // one client a socket path, kept side by side
};
Result<Like> ParseLike(std::string_view text);

struct PluginOptions {
  bool pre_start = false;
  bool preferred = false;
};

// One Register call and the connection that followed.
using ClientId = int;

struct Endpoint {
  ClientId client = 0;  // 0: known from the checkpoint only
  std::string path;
  PluginOptions options;
  std::optional<MonoTime> stopped;
};

class Registrations {
 public:
  explicit Registrations(Like like) : like_(like) {}

  void Begin(ClientId client, const std::string& resource, const std::string& path);
  // 1.37 refuses a path that it believes connected; then call Failed.
  Status Connected(ClientId client, PluginOptions options);
  void Failed(ClientId client);

  struct Ended {
    std::optional<ClientId> close;     // whose connection the kubelet closes
    bool devices_unhealthy = false;    // all of the resource
    std::optional<ClientId> promoted;  // is asked from now on
  };
  Ended StreamEnded(ClientId client, MonoTime now);

  // A resource that the checkpoint names: known, and stopped.
  void Restore(const std::string& resource, MonoTime now);
  void Forget(const std::string& resource) { endpoints_.erase(resource); }

  // Who is asked for the resource; nullptr where the kubelet does not know it.
  const Endpoint* Find(std::string_view resource) const;
  // All of them, the one that is asked last.
  const std::vector<Endpoint>& All(std::string_view resource) const;
  std::vector<std::string> Resources() const;

 private:
  struct Client {
    std::string resource;
    std::string path;
  };
  const std::string& Key(const Client& client) const {
    return like_ == Like::k134 ? client.resource : client.path;
  }

  Like like_;
  std::map<ClientId, Client> begun_;         // every client whose end is still to come
  std::map<std::string, ClientId> clients_;  // by resource (1.34) or path (1.37)
  std::map<std::string, std::vector<Endpoint>, std::less<>> endpoints_;
};

}  // namespace ndp::sim_kubelet
