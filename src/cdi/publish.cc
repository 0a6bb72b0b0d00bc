#include "cdi/publish.h"

#include <fmt/format.h>

#include <algorithm>

#include "cdi/gpu_devices.h"
#include "cdi/names.h"

namespace ndp::cdi {
namespace {

// Id to device name, for all that the machine has.
std::map<std::string, std::string> DeviceNames(const Options& options,
                                               const inventory::Inventory& inventory) {
  std::map<std::string, std::string> names;
  if (inventory.platform == inventory::Platform::kWsl) names["all"] = "all";
  // The only device that is offered of a Tegra.
  if (inventory.platform == inventory::Platform::kTegra) {
    names[std::string(kTegraId)] = TegraName(options.naming);
    return names;
  }
  for (const inventory::Gpu& gpu : inventory.gpus) {
    bool wsl = inventory.platform == inventory::Platform::kWsl;
    names[gpu.uuid()] = wsl ? "all" : DeviceName(options.naming, gpu);
    for (const inventory::MigDevice& mig : gpu.mig) {
      names[mig.nvml.uuid] = DeviceName(options.naming, gpu, mig);
    }
  }
  return names;
}

// Device names of ids that pods hold: of present devices by the naming in force, of vanished ones
// by their id, which is the name unless names are indices. An index says nothing about a device
// that is gone: another one may have it.
std::set<std::string> HeldNames(const std::map<std::string, std::string>& names,
                                const std::set<std::string>& held) {
  std::set<std::string> out;
  for (const std::string& id : held) {
    auto known = names.find(id);
    out.insert(known == names.end() ? id : known->second);
  }
  return out;
}

// As a file of that kind has them.
std::set<std::string> NamesOfKind(const std::set<std::string>& qualified, std::string_view kind) {
  const std::string start = fmt::format("{}=", kind);
  std::set<std::string> names;
  for (const std::string& name : qualified) {
    if (name.starts_with(start)) names.insert(name.substr(start.size()));
  }
  return names;
}

// Why a runtime would refuse devices of ours, by name; one warning for each file that is to blame.
std::map<std::string, std::string> RefusedNames(const SpecDir& dir, const Spec& spec,
                                                std::vector<std::string>& warnings) {
  std::map<std::string, std::string> refused;
  for (const auto& [file, names] : dir.Conflicts(spec)) {
    const std::string more =
        names.size() == 1 ? "" : fmt::format(" and {} more of our names", names.size() - 1);
    const std::string reason =
        fmt::format("{} defines {}={}{} too, and runtimes refuse a name of two files: remove one",
                    file.string(), spec.kind, names.front(), more);
    warnings.push_back(reason);
    for (const std::string& name : names) refused.try_emplace(name, reason);
  }
  return refused;
}

}  // namespace

std::string Offer::TroubleOf(const std::string& id) const {
  if (!trouble.empty()) return trouble;
  if (auto known = troubles.find(id); known != troubles.end()) return known->second;
  return names.contains(id) ? "" : "the device has no CDI entry";
}

std::vector<std::string> Offer::Names(const std::vector<std::string>& ids) const {
  std::vector<std::string> out;
  for (const std::string& id : ids) {
    auto name = names.find(id);
    if (name == names.end()) continue;
    if (std::ranges::find(out, name->second) == out.end()) out.push_back(name->second);
  }
  out.insert(out.end(), extras.begin(), extras.end());
  return out;
}

Offer Publish(const SpecDir& dir, const Options& options, const inventory::Inventory& inventory,
              Built built, const std::set<std::string>& held, const std::set<std::string>& others) {
  Offer offer{.troubles = std::move(built.troubles),
              .trouble = std::move(built.gpu_trouble),
              .warnings = std::move(built.warnings)};
  const auto device_names = DeviceNames(options, inventory);
  std::set<std::string> unwritten;
  for (ClassSpec& entry : built.specs) {
    bool gpus = entry.device_class == options.gpu_class;
    const auto previous = dir.Read(entry.spec.kind);
    if (gpus && previous) KeepHeld(entry.spec, *previous, HeldNames(device_names, held));
    Spec file = entry.spec;
    if (previous) KeepHeld(file, *previous, NamesOfKind(others, file.kind));
    const auto written = dir.Write(file);
    if (!written.ok()) {
      std::string reason =
          fmt::format("write the CDI file of {}: {}", entry.spec.kind, written.error().message());
      if (gpus || (entry.device_class == kImexClass && options.imex_required)) {
        offer.trouble = reason;
      }
      offer.warnings.push_back(std::move(reason));
      unwritten.insert(entry.spec.kind);
      offer.complete = false;
      continue;
    }
    offer.files.push_back(dir.FileOf(entry.spec.kind));
    for (const Device& device : entry.spec.devices) {
      offer.written.insert(fmt::format("{}={}", entry.spec.kind, device.name));
    }
    if (!gpus) continue;
    const auto refused = RefusedNames(dir, entry.spec, offer.warnings);
    for (const auto& [id, name] : device_names) {
      if (const auto at = refused.find(name); at != refused.end()) {
        offer.troubles.try_emplace(id, at->second);
      }
      if (entry.spec.Find(name) != nullptr && !offer.troubles.contains(id)) {
        offer.names[id] = fmt::format("{}={}", entry.spec.kind, name);
      }
    }
  }
  for (const auto& [id, name] : device_names) {
    if (!offer.names.contains(id)) offer.troubles.emplace(id, "the device has no CDI entry");
  }
  std::erase_if(built.specs,
                [&](const ClassSpec& entry) { return unwritten.contains(entry.spec.kind); });
  offer.extras = built.ExtraNames();
  if (offer.trouble.empty()) offer.trouble = std::move(built.imex_trouble);
  return offer;
}

OnDisk LookAtDisk(const SpecDir& dir, const Offer& offer) {
  OnDisk found;
  std::set<std::string> there;
  for (const std::string_view device_class : kClasses) {
    const auto spec = dir.Read(fmt::format("{}/{}", kVendor, device_class));
    if (!spec) continue;
    // A file of ours may stay that has nothing to offer any more.
    const bool theirs_too =
        offer.files.empty() ||
        std::ranges::find(offer.files, dir.FileOf(spec->kind)) != offer.files.end();
    for (const Device& device : spec->devices) {
      const std::string name = fmt::format("{}={}", spec->kind, device.name);
      there.insert(name);
      if (theirs_too && !offer.written.contains(name)) found.others.insert(name);
    }
  }
  const auto is_there = [&there](const std::string& name) { return there.contains(name); };
  found.resolves =
      std::ranges::all_of(offer.extras, is_there) &&
      std::ranges::all_of(offer.names, [&](const auto& entry) { return is_there(entry.second); });
  return found;
}

}  // namespace ndp::cdi
