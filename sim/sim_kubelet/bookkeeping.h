// What the kubelet's device manager knows and decides: devices of each resource, who holds them,
// which to hand out next. Pure, without gRPC; one thread.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sim_kubelet/pods.h"
#include "sim_kubelet/registrations.h"

namespace ndp::sim_kubelet {

struct Device {
  std::string id;
  bool healthy = false;
  std::vector<std::int64_t> numa;
};

struct Quantity {
  int capacity = 0;
  int allocatable = 0;
  bool operator==(const Quantity&) const = default;
};
using Node = std::map<std::string, Quantity>;

struct ContainerRequest {
  std::string pod;
  std::string container;
  std::string resource;
  int count = 0;
  bool init = false;
  std::set<std::int64_t> numa;  // the topology manager's choice; empty: none
};

// The devices of one container as they are being chosen: what is sure already, and, where there is
// a choice, what the plugin is asked.
struct Choice {
  ClientId client = 0;
  PluginOptions options;
  std::set<std::string> chosen;
  bool already_held = false;  // a container that restarts: nothing is asked

  struct Question {
    std::vector<std::string> available;  // in no order
    std::vector<std::string> must_include;
  };
  std::optional<Question> question;
};

class Bookkeeping {
 public:
  struct Config {
    Like like = Like::k137;
    Duration grace = std::chrono::minutes(5);  // until a resource without a plugin is forgotten
    unsigned seed = 1;                         // of the order in which ids are given
  };
  explicit Bookkeeping(const Config& config);

  Registrations& registrations() { return registrations_; }
  const Registrations& registrations() const { return registrations_; }

  // A list came in, of whatever instance: it replaces the former whole.
  void Replace(const std::string& resource, std::vector<Device> devices);
  void MarkUnhealthy(const std::string& resource);
  const std::map<std::string, Device>* DevicesOf(std::string_view resource) const;

  // What the node says; forgets resources whose grace is over and appends their names.
  Node Report(MonoTime now, std::vector<std::string>* forgotten = nullptr);

  // Admission of a container, first half. An error rejects the pod.
  Result<Choice> Begin(const ContainerRequest& request);
  // The plugin's answer to the question; ids that are not available are dropped silently, and the
  // kubelet fills up by itself. May ask once more.
  Status Answer(const ContainerRequest& request, const std::vector<std::string>& preferred,
                Choice& choice);
  // The plugin has allocated. kInternal where the real kubelet would crash: an id that has left the
  // list meanwhile.
  Status Commit(const ContainerRequest& request, const Choice& choice, std::string response);
  // Allocate failed, or the pod is gone.
  void Release(std::string_view pod);
  void Abandon(const Choice& choice, const std::string& resource);

  // An id that a pod holds and the list lacks: with a topology policy, each admission crashes.
  std::optional<std::string> HeldButUnlisted() const;

  const std::vector<Holding>& holdings() const { return holdings_; }
  Checkpoint ToCheckpoint() const;
  void Restore(const Checkpoint& checkpoint, MonoTime now);

 private:
  std::set<std::string> InUse(std::string_view resource) const;
  std::set<std::string> Reusable(const ContainerRequest& request) const;
  std::vector<std::string> Shuffled(const std::set<std::string>& ids);
  void Take(const ContainerRequest& request, const std::vector<std::string>& from, Choice& choice);
  // Goes on until the choice is complete or there is something to ask.
  void Continue(const ContainerRequest& request, Choice& choice);
  std::set<std::string> Available(std::string_view resource) const;
  bool IsOn(std::string_view resource, const std::string& id,
            const std::set<std::int64_t>& numa) const;

  Config config_;
  Registrations registrations_;
  std::map<std::string, std::map<std::string, Device>, std::less<>> devices_;
  std::vector<Holding> holdings_;
  std::map<std::string, std::set<std::string>, std::less<>> pending_;  // chosen, not yet held
  std::mt19937 random_;
};

}  // namespace ndp::sim_kubelet
