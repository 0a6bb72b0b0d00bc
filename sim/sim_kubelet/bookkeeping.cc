#include "sim_kubelet/bookkeeping.h"

#include <fmt/core.h>

#include <algorithm>

namespace ndp::sim_kubelet {
namespace {

using Ids = std::set<std::string>;

Ids Without(const Ids& ids, const Ids& others) {
  Ids out;
  std::ranges::set_difference(ids, others, std::inserter(out, out.end()));
  return out;
}

int Size(const Ids& ids) { return static_cast<int>(ids.size()); }

}  // namespace

Bookkeeping::Bookkeeping(const Config& config)
    : config_(config), registrations_(config.like), random_(config.seed) {}

void Bookkeeping::Replace(const std::string& resource, std::vector<Device> devices) {
  auto& table = devices_[resource];
  table.clear();
  for (Device& device : devices) {
    std::string id = device.id;
    table.insert_or_assign(std::move(id), std::move(device));
  }
}

void Bookkeeping::MarkUnhealthy(const std::string& resource) {
  for (auto& [id, device] : devices_[resource]) device.healthy = false;
}

const std::map<std::string, Device>* Bookkeeping::DevicesOf(std::string_view resource) const {
  const auto found = devices_.find(resource);
  return found == devices_.end() ? nullptr : &found->second;
}

Node Bookkeeping::Report(MonoTime now, std::vector<std::string>* forgotten) {
  Node node;
  for (auto at = devices_.begin(); at != devices_.end();) {
    const Endpoint* endpoint = registrations_.Find(at->first);
    if (endpoint == nullptr || (endpoint->stopped && now - *endpoint->stopped > config_.grace)) {
      if (forgotten != nullptr) forgotten->push_back(at->first);
      registrations_.Forget(at->first);
      at = devices_.erase(at);
      continue;
    }
    Quantity& quantity = node[at->first];
    quantity.capacity = static_cast<int>(at->second.size());
    quantity.allocatable = static_cast<int>(
        std::ranges::count_if(at->second, [](const auto& entry) { return entry.second.healthy; }));
    ++at;
  }
  return node;
}

Ids Bookkeeping::InUse(std::string_view resource) const {
  Ids ids;
  if (const auto found = pending_.find(resource); found != pending_.end()) ids = found->second;
  for (const Holding& holding : holdings_) {
    if (holding.resource == resource) ids.merge(holding.Ids());
  }
  return ids;
}

Ids Bookkeeping::Available(std::string_view resource) const {
  Ids healthy;
  for (const auto& [id, device] : devices_.find(resource)->second) {
    if (device.healthy) healthy.insert(id);
  }
  return Without(healthy, InUse(resource));
}

// What the pod's finished init containers held, and no other container of it has taken over.
Ids Bookkeeping::Reusable(const ContainerRequest& request) const {
  Ids ids;
  for (const Holding& holding : holdings_) {
    if (holding.pod == request.pod && holding.resource == request.resource && holding.init) {
      ids.merge(holding.Ids());
    }
  }
  for (const Holding& holding : holdings_) {
    if (holding.pod == request.pod && holding.resource == request.resource && !holding.init) {
      ids = Without(ids, holding.Ids());
    }
  }
  return ids;
}

// The kubelet's sets are Go maps: their order changes from call to call.
std::vector<std::string> Bookkeeping::Shuffled(const Ids& ids) {
  std::vector<std::string> out(ids.begin(), ids.end());
  std::ranges::shuffle(out, random_);
  return out;
}

bool Bookkeeping::IsOn(std::string_view resource, const std::string& id,
                       const std::set<std::int64_t>& numa) const {
  const auto& table = devices_.find(resource)->second;
  const auto device = table.find(id);
  return device != table.end() && std::ranges::any_of(device->second.numa, [&](std::int64_t node) {
           return numa.contains(node);
         });
}

Result<Choice> Bookkeeping::Begin(const ContainerRequest& request) {
  const auto table = devices_.find(request.resource);
  for (const Holding& holding : holdings_) {
    if (holding.pod != request.pod || holding.container != request.container ||
        holding.resource != request.resource) {
      continue;
    }
    const Ids held = holding.Ids();
    if (Size(held) != request.count) {
      return Error(Code::kInvalidArgument,
                   fmt::format("pod {} container {} changed request for resource {} from {} to {}",
                               request.pod, request.container, request.resource, held.size(),
                               request.count));
    }
    const bool healthy = table != devices_.end() && std::ranges::all_of(held, [&](const auto& id) {
                           const auto device = table->second.find(id);
                           return device != table->second.end() && device->second.healthy;
                         });
    if (!healthy) {
      return Error(Code::kUnavailable,
                   "previously allocated devices are no longer healthy; cannot allocate unhealthy "
                   "devices " +
                       request.resource);
    }
    return Choice{
        .client = 0, .options = {}, .chosen = held, .already_held = true, .question = std::nullopt};
  }
  const Endpoint* endpoint = registrations_.Find(request.resource);
  if (table == devices_.end() || endpoint == nullptr) {
    return Error(Code::kNotFound, "can't allocate unregistered device " + request.resource);
  }
  Choice choice{.client = endpoint->client,
                .options = endpoint->options,
                .chosen = {},
                .already_held = false,
                .question = std::nullopt};
  Take(request, Shuffled(Reusable(request)), choice);
  const int needed = request.count - Size(choice.chosen);
  const int available = Size(Available(request.resource));
  if (available < needed) {
    return Error(
        Code::kUnavailable,
        fmt::format("requested number of devices unavailable for {}. Requested: {}, Available: {}",
                    request.resource, needed, available));
  }
  Continue(request, choice);
  return choice;
}

void Bookkeeping::Take(const ContainerRequest& request, const std::vector<std::string>& from,
                       Choice& choice) {
  for (const std::string& id : from) {
    if (Size(choice.chosen) == request.count) return;
    choice.chosen.insert(id);
    pending_[request.resource].insert(id);
  }
}

void Bookkeeping::Continue(const ContainerRequest& request, Choice& choice) {
  choice.question.reset();
  const Ids available = Available(request.resource);
  Ids aligned;
  for (const std::string& id : available) {
    if (IsOn(request.resource, id, request.numa)) aligned.insert(id);
  }
  const Ids& first = aligned.empty() ? available : aligned;
  const int needed = request.count - Size(choice.chosen);
  if (needed == 0) return;
  if (needed >= Size(first)) {
    Take(request, Shuffled(first), choice);
    if (Size(choice.chosen) < request.count) Continue(request, choice);
    return;
  }
  if (!choice.options.preferred) {
    Take(request, Shuffled(first), choice);
    return;
  }
  Ids candidates = first;
  candidates.insert(choice.chosen.begin(), choice.chosen.end());
  choice.question =
      Choice::Question{.available = Shuffled(candidates), .must_include = Shuffled(choice.chosen)};
}

Status Bookkeeping::Answer(const ContainerRequest& request,
                           const std::vector<std::string>& preferred, Choice& choice) {
  const Ids offered(choice.question->available.begin(), choice.question->available.end());
  const Ids available = Available(request.resource);
  std::vector<std::string> usable;
  for (const std::string& id : preferred) {
    if (offered.contains(id) && available.contains(id)) usable.push_back(id);
  }
  Take(request, usable, choice);
  std::vector<std::string> rest;
  for (const std::string& id : choice.question->available) {
    if (available.contains(id)) rest.push_back(id);
  }
  Take(request, rest, choice);
  choice.question.reset();
  if (Size(choice.chosen) < request.count) {
    return Error(Code::kUnavailable, "devices became unavailable for " + request.resource);
  }
  return {};
}

Status Bookkeeping::Commit(const ContainerRequest& request, const Choice& choice,
                           std::string response) {
  Abandon(choice, request.resource);
  Holding holding{.pod = request.pod,
                  .container = request.container,
                  .resource = request.resource,
                  .devices = {},
                  .response = std::move(response),
                  .init = request.init};
  const auto table = devices_.find(request.resource);
  for (const std::string& id : choice.chosen) {
    if (table == devices_.end() || !table->second.contains(id)) {
      return Error(Code::kInternal, "device " + id + " of " + request.resource +
                                        " left the list while Allocate was in flight: the real "
                                        "kubelet crashes");
    }
    const std::vector<std::int64_t>& numa = table->second.at(id).numa;
    for (const std::int64_t node : numa) holding.devices[node].push_back(id);
    if (numa.empty()) holding.devices[-1].push_back(id);
  }
  holdings_.push_back(std::move(holding));
  return {};
}

void Bookkeeping::Abandon(const Choice& choice, const std::string& resource) {
  for (const std::string& id : choice.chosen) pending_[resource].erase(id);
}

void Bookkeeping::Release(std::string_view pod) {
  std::erase_if(holdings_, [pod](const Holding& holding) { return holding.pod == pod; });
}

std::optional<std::string> Bookkeeping::HeldButUnlisted() const {
  for (const Holding& holding : holdings_) {
    const auto table = devices_.find(holding.resource);
    // A resource without any list yet is not looked at.
    if (table == devices_.end() || table->second.empty()) continue;
    for (const std::string& id : holding.Ids()) {
      if (!table->second.contains(id)) return id;
    }
  }
  return std::nullopt;
}

Checkpoint Bookkeeping::ToCheckpoint() const {
  Checkpoint checkpoint{.holdings = holdings_, .registered = {}};
  for (const auto& [resource, table] : devices_) {
    auto& healthy = checkpoint.registered[resource];
    for (const auto& [id, device] : table) {
      if (device.healthy) healthy.push_back(id);
    }
  }
  return checkpoint;
}

void Bookkeeping::Restore(const Checkpoint& checkpoint, MonoTime now) {
  holdings_ = checkpoint.holdings;
  for (const auto& [resource, ids] : checkpoint.registered) {
    devices_[resource];
    registrations_.Restore(resource, now);
  }
}

}  // namespace ndp::sim_kubelet
