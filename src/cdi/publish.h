// The last step before a list of devices may name ids: specifications on disk, and what Allocate
// may hand out because of them. The loop's thread.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cdi/build.h"
#include "cdi/options.h"
#include "cdi/spec_dir.h"
#include "inventory/inventory.h"

namespace ndp::cdi {

// An immutable snapshot, as the others are.
struct Offer {
  // Id of a device (UUID) to its qualified name: what is here resolves on disk.
  std::map<std::string, std::string> names;
  // Id to why it does not: the device is Unhealthy where only CDI hands it out.
  std::map<std::string, std::string> troubles;
  // Why nothing may be handed out at all (no driver files, folder not writable, a required IMEX
  // channel is missing); tried again. Empty otherwise.
  std::string trouble;
  // Handed out with every device.
  std::vector<std::string> extras;
  std::vector<std::string> warnings;
  std::set<std::string> written;             // qualified, all of ours that the files have
  std::vector<std::filesystem::path> files;  // that must be on disk for all this to hold
  bool complete = true;                      // every specification could be written

  // Why the device may not be handed out by CDI; empty where it may.
  std::string TroubleOf(const std::string& id) const;
  // Qualified names for Allocate: of `ids`, each once and in their order, then the extras. Ids that
  // do not resolve are left out; nobody asks for them.
  std::vector<std::string> Names(const std::vector<std::string>& ids) const;
  bool operator==(const Offer&) const = default;
};

// Writes what differs from the files in `dir`. `held`: ids that pods hold; their entries stay, also
// where the machine has the device no longer. `others`: qualified names of another instance; their
// entries stay too, and are not offered.
Offer Publish(const SpecDir& dir, const Options& options, const inventory::Inventory& inventory,
              Built built, const std::set<std::string>& held,
              const std::set<std::string>& others = {});

// What our files have after somebody else may have written them.
struct OnDisk {
  bool resolves = true;  // all that the offer hands out is there
  // Qualified names in the offer's files that are not its own; of all files where it has none.
  std::set<std::string> others;
};
OnDisk LookAtDisk(const SpecDir& dir, const Offer& offer);

}  // namespace ndp::cdi
