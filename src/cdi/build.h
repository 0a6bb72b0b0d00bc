// From a machine to its CDI specifications.
//
// One thread; reads files, changes none. What is wrong with one device costs that device alone, and
// what is wrong with the driver's files costs the GPU class: the reasons are in the result, for the
// node to mark devices Unhealthy.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cdi/options.h"
#include "cdi/spec.h"
#include "inventory/inventory.h"
#include "os/host_fs.h"

namespace ndp::cdi {

struct ClassSpec {
  std::string device_class;
  Spec spec;
  bool operator==(const ClassSpec&) const = default;
};

struct Built {
  std::vector<ClassSpec> specs;  // validated; the GPU class first
  // By id (UUID) of a device: why it has no entry. Such a device must not be offered by CDI.
  std::map<std::string, std::string> troubles;
  // Why no device of the machine has an entry; empty where that is not so.
  std::string gpu_trouble;
  // Why a required IMEX channel is missing: no device may be offered. Empty otherwise.
  std::string imex_trouble;
  // Classes that are on but of which the node has nothing, and so are not handed out.
  std::set<std::string> dropped;
  std::vector<std::string> warnings;

  const Spec* Find(std::string_view device_class) const;
  // What a container gets besides its GPUs: qualified names of IMEX channels, then of gdrcopy, gds
  // and mofed.
  std::vector<std::string> ExtraNames() const;
};

// `driver`: the driver's root as this process sees it. `host`: where /sys and /proc are.
// No usable device is no error: there is just no specification of the class.
Built Build(const Options& options, const inventory::Inventory& inventory, const os::HostFs& driver,
            const os::HostFs& host);

// Device nodes of the extra classes and channels that the options ask for, as far as they are there
// now. Cheap; where it changes, so does what Build gives.
std::vector<std::string> PresentExtras(const Options& options, const os::HostFs& driver,
                                       const os::HostFs& host);

// Entries of `previous` that pods still hold (by device name) and `fresh` lacks, added to `fresh`:
// a container that restarts is resolved by the same names again.
void KeepHeld(Spec& fresh, const Spec& previous, const std::set<std::string>& held);

}  // namespace ndp::cdi
