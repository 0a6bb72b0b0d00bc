// What each resource shows to the kubelet: the resources of the node with the verdicts of health,
// what pods hold, and how containers get devices, put into the snapshots that servers answer from.
// Pure; loop thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "config/settings.h"
#include "health/board.h"
#include "plugin/held_devices.h"
#include "plugin/resource_view.h"
#include "resource/pair_scores.h"
#include "resource/resource_set.h"

namespace ndp::node {

// What one server has shown its kubelet, for what may not vanish from its list yet.
struct Shown {
  const plugin::ResourceView* view = nullptr;
  const plugin::UnhealthyAtKubelet* unhealthy = nullptr;
};

struct OfferInputs {
  const config::Settings& settings;
  const resource::ResourceSet& set;
  const health::HealthBoard& board;
  const plugin::HeldDevices& held;
  std::map<std::string, Shown, std::less<>> shown;  // by resource
  std::shared_ptr<const resource::PairScores> scores;
  std::vector<std::string> control_nodes;  // container paths that exist
  // GPUs that pods hold under another identity: a MIG device's parent, a GPU's MIG devices.
  std::map<std::string, std::vector<std::string>> relatives;
  // Why a device cannot be handed out the way that is configured (no CDI entry, MPS not ready).
  std::map<std::string, std::string, std::less<>> device_trouble;    // by UUID
  std::map<std::string, std::string, std::less<>> resource_trouble;  // by resource
  std::string trouble;                                               // of all; empty: none
  std::vector<int> imex_channels;
  std::vector<std::string> cdi_additional;
  // Devices whose CDI names are left out of answers, since the other strategies do.
  bool all_without_cdi = false;
  std::set<std::string, std::less<>> without_cdi;  // by UUID
  bool index_in_doubt = false;
  MonoTime now;
};

struct Offer {
  plugin::Resource resource;
  // When an id that stays for now may leave; nullopt: nothing waits for time.
  std::optional<MonoTime> look_again;
  // Some of it is not offered, or stays, because a pod holds it.
  bool waits_for_pods = false;
  // Not offered any more, and nothing of it is waited for: its server may go.
  bool retire = false;
};

// An offer for every resource of the set, and for every one that is shown, or held by a pod under
// ids of our own forms, and is not in the set.
std::vector<Offer> BuildOffers(const OfferInputs& in);

}  // namespace ndp::node
