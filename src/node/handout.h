// What containers get besides their GPUs, and whether it is there: CDI entries on disk, IMEX
// channels, control nodes. Written and looked at before a list names the devices. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "cdi/options.h"
#include "cdi/publish.h"
#include "cdi/spec_dir.h"
#include "config/settings.h"
#include "inventory/inventory.h"
#include "node/standing_warnings.h"
#include "os/file.h"
#include "os/host_fs.h"
#include "plugin/held_devices.h"

namespace ndp::node {

class Handout {
 public:
  // `driver`: the driver root as this process sees it.
  Handout(const os::HostFs& driver, const os::HostFs& host, const os::HostFs& devices,
          log::RateLimit& limit)
      : driver_(driver), host_(host), devices_(devices), limit_(limit) {}

  struct Answer {
    std::vector<std::string> control_nodes;  // container paths that exist
    std::vector<int> imex_channels;          // of those configured, the ones that exist
    std::vector<std::string> cdi_additional;
    std::map<std::string, std::string, std::less<>> device_trouble;  // by UUID
    std::set<std::string, std::less<>> told;  // reasons that are in the log already
    std::string trouble;                      // why nothing may be handed out; empty where it may
    // With another strategy on, trouble with CDI costs a device its CDI name alone.
    bool all_without_cdi = false;
    std::set<std::string, std::less<>> without_cdi;  // by UUID
    std::vector<std::string> warnings;
  };
  // Writes CDI files where the settings ask for them and something has changed since the last call,
  // or the last one failed.
  Answer Prepare(const config::Settings& settings,
                 const std::shared_ptr<const inventory::Inventory>& inventory,
                 const plugin::HeldDevices& held);
  // The driver's files may have changed without the inventory: the next Prepare looks again.
  void Forget() { basis_.inventory = nullptr; }
  // For the start: another instance may hand out what its CDI files have.
  void set_another_serves(bool serves) { another_serves_ = serves; }

 private:
  void AddImex(const config::Settings& settings, const cdi::Options& options, Answer& answer) const;
  void FindMissingNodes(const config::Settings& settings, const inventory::Inventory* inventory,
                        Answer& answer) const;
  void PublishCdi(const config::Settings& settings, const cdi::Options& options,
                  const std::shared_ptr<const inventory::Inventory>& inventory,
                  const plugin::HeldDevices& held);
  bool StillResolves(const cdi::SpecDir& dir);
  void RemoveDisabled(const cdi::SpecDir& dir, const cdi::Options& options) const;
  void TellCdi(const config::Settings& settings);

  const os::HostFs& driver_;
  const os::HostFs& host_;
  const os::HostFs& devices_;
  log::RateLimit& limit_;
  // What the CDI files depend on.
  struct Basis {
    std::shared_ptr<const inventory::Inventory> inventory;
    cdi::Options options;
    std::string folder;
    std::string others;  // files of others in it
    std::set<std::string> held;
    std::vector<std::string> extra_nodes;
    bool operator==(const Basis&) const = default;
  };
  Basis basis_;  // of offer_
  cdi::Offer offer_;
  std::vector<os::FileIdentity> looked_at_;  // of offer_.files; empty: not since they were written
  std::set<std::string> others_;             // names of another instance that our files have
  bool told_others_ = false;
  bool another_serves_ = false;
  StandingWarnings cdi_warnings_{limit_, "CDI"};
  std::string told_trouble_;
  bool started_ = false;
};

}  // namespace ndp::node
