#include "sim_kubelet/registrations.h"

#include <algorithm>

namespace ndp::sim_kubelet {

Result<Like> ParseLike(std::string_view text) {
  if (text == "1.34" || text == "1.35" || text == "1.36") return Like::k134;
  if (text == "1.37") return Like::k137;
  return Error(Code::kInvalidArgument,
               "kubelet '" + std::string(text) + "' is not known; want 1.34 or 1.37");
}

void Registrations::Begin(ClientId client, const std::string& resource, const std::string& path) {
  const Client& begun = begun_[client] = {.resource = resource, .path = path};
  clients_[Key(begun)] = client;
}

Status Registrations::Connected(ClientId client, PluginOptions options) {
  const Client& begun = begun_.at(client);
  std::vector<Endpoint>& endpoints = endpoints_[begun.resource];
  const Endpoint endpoint{
      .client = client, .path = begun.path, .options = options, .stopped = std::nullopt};
  if (like_ == Like::k134) {
    endpoints = {endpoint};
    return {};
  }
  if (std::ranges::any_of(endpoints, [&](const Endpoint& other) {
        return other.path == begun.path && !other.stopped;
      })) {
    return Error(Code::kInternal, "device plugin already connected");
  }
  std::erase_if(endpoints, [](const Endpoint& other) { return other.stopped.has_value(); });
  endpoints.push_back(endpoint);
  return {};
}

void Registrations::Failed(ClientId client) {
  // By key and not by client: a living client of the same key is forgotten, and its end will go
  // unnoticed. The real one does this too.
  clients_.erase(Key(begun_.at(client)));
  begun_.erase(client);
}

Registrations::Ended Registrations::StreamEnded(ClientId client, MonoTime now) {
  const auto begun = begun_.find(client);
  if (begun == begun_.end()) return {};
  const Client ended = begun->second;
  begun_.erase(begun);
  const auto found = clients_.find(Key(ended));
  if (found == clients_.end()) return {};
  // Up to 1.36 this may be the newer client of the resource.
  Ended result{.close = found->second, .devices_unhealthy = false, .promoted = std::nullopt};
  clients_.erase(found);

  std::vector<Endpoint>& endpoints = endpoints_[ended.resource];
  if (like_ == Like::k137 && endpoints.size() > 1) {
    const bool asked = endpoints.back().path == ended.path;
    std::erase_if(endpoints, [&](const Endpoint& other) { return other.path == ended.path; });
    if (asked) result.promoted = endpoints.back().client;
    return result;
  }
  for (Endpoint& endpoint : endpoints) endpoint.stopped = now;
  result.devices_unhealthy = !endpoints.empty();
  return result;
}

void Registrations::Restore(const std::string& resource, MonoTime now) {
  endpoints_[resource] = {Endpoint{.client = 0, .path = "", .options = {}, .stopped = now}};
}

const Endpoint* Registrations::Find(std::string_view resource) const {
  const auto found = endpoints_.find(resource);
  return found == endpoints_.end() || found->second.empty() ? nullptr : &found->second.back();
}

const std::vector<Endpoint>& Registrations::All(std::string_view resource) const {
  static const std::vector<Endpoint> none;
  const auto found = endpoints_.find(resource);
  return found == endpoints_.end() ? none : found->second;
}

std::vector<std::string> Registrations::Resources() const {
  std::vector<std::string> names;
  for (const auto& [name, endpoints] : endpoints_) {
    if (!endpoints.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace ndp::sim_kubelet
