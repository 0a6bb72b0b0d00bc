#include "node/handout.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "cdi/build.h"
#include "cdi/discovery.h"
#include "cdi/extra_classes.h"

namespace ndp::node {
namespace {

constexpr Duration kLongestWait = std::chrono::milliseconds(50);

std::set<std::string> HeldUuids(const plugin::HeldDevices& held) {
  std::set<std::string> uuids;
  for (const std::string& resource : held.Resources()) {
    for (const std::string& id : held.Ids(resource)) uuids.emplace(StripReplica(id));
  }
  return uuids;
}

}  // namespace

// Two instances with different names for the same devices write the same file. Each adds what it
// lacks and keeps what the other has, so both resolve and neither writes again.
bool Handout::StillResolves(const cdi::SpecDir& dir) {
  std::vector<os::FileIdentity> files;
  for (const std::filesystem::path& file : offer_.files) {
    const auto identity = os::Identify(file);
    files.push_back(identity.ok() ? *identity : os::FileIdentity());
  }
  if (files == looked_at_) return true;
  looked_at_ = std::move(files);
  cdi::OnDisk found = cdi::LookAtDisk(dir, offer_);
  others_ = std::move(found.others);
  if (!others_.empty() && !std::exchange(told_others_, true)) {
    log::Warning(
        "the CDI files have names of another instance, which stay: its --device-id-strategy or its "
        "devices are not ours",
        {{"folder", dir.folder().string()}, {"name", *others_.begin()}});
  }
  if (!found.resolves && limit_.Allow("CDI file replaced")) {
    log::Warning("a CDI file was replaced and lacked names that are handed out: written again",
                 {{"folder", dir.folder().string()}});
  }
  return found.resolves;
}

void Handout::RemoveDisabled(const cdi::SpecDir& dir, const cdi::Options& options) const {
  // It may hand out what they have; the next start removes them.
  if (another_serves_) return;
  for (const auto& file : dir.RemoveDisabled(cdi::EnabledClasses(options))) {
    log::Info("removed the CDI file of a class that is disabled", {{"file", file.string()}});
  }
}

void Handout::PublishCdi(const config::Settings& settings, const cdi::Options& options,
                         const std::shared_ptr<const inventory::Inventory>& inventory,
                         const plugin::HeldDevices& held) {
  const cdi::SpecDir dir(settings.cdi.spec_dir);
  Basis basis{.inventory = inventory,
              .options = options,
              .folder = settings.cdi.spec_dir,
              .others = dir.OthersState(),
              .held = HeldUuids(held),
              .extra_nodes = cdi::PresentExtras(options, driver_, host_)};
  const bool same = basis == basis_;
  const bool there = std::ranges::all_of(offer_.files, [](const std::filesystem::path& file) {
    std::error_code ec;
    return std::filesystem::exists(file, ec);
  });
  const bool resolves = !there || basis.folder != basis_.folder || StillResolves(dir);
  if (same && there && resolves && offer_.trouble.empty() && offer_.complete) return;
  if (same && !there && limit_.Allow("CDI file gone")) {
    log::Warning("a CDI file has gone: written again", {{"folder", settings.cdi.spec_dir}});
  }
  cdi::Built built = cdi::Build(options, *inventory, driver_, host_);
  // That takes a while, in which another instance may have written. From here to our own file it
  // waits: what it wrote in between would be lost. One that does not let go is not waited for; what
  // it loses it finds out by its watch.
  const auto alone = os::FileLock::OfFolder(dir.folder(), kLongestWait);
  if (there && basis.folder == basis_.folder) StillResolves(dir);
  if (!std::exchange(started_, true)) {
    RemoveDisabled(dir, options);
    if (another_serves_) others_ = cdi::LookAtDisk(dir, {}).others;
  }
  offer_ = cdi::Publish(dir, options, *inventory, std::move(built), basis.held, others_);
  looked_at_.clear();
  basis_ = std::move(basis);
}

void Handout::TellCdi(const config::Settings& settings) {
  cdi_warnings_.Tell(offer_.warnings);
  const std::string before = std::exchange(told_trouble_, "");
  if (offer_.trouble.empty()) return;
  if (std::ranges::find(offer_.warnings, offer_.trouble) != offer_.warnings.end()) return;
  const bool told = offer_.trouble == before;
  if (!told && !limit_.Allow("CDI trouble")) return;
  told_trouble_ = offer_.trouble;
  if (told) return;
  if (settings.plugin.uses_non_cdi()) {
    log::Warning("CDI cannot be had: the other strategies go on", {{"why", offer_.trouble}});
  } else {
    log::Error("CDI files cannot be had: all devices are Unhealthy", {{"why", offer_.trouble}});
  }
}

void Handout::AddImex(const config::Settings& settings, const cdi::Options& options,
                      Answer& answer) const {
  const cdi::Discovery discovery(options, driver_, host_);
  const cdi::ImexChannels found = cdi::DiscoverImexChannels(discovery, settings.imex.channel_ids);
  for (const int channel : settings.imex.channel_ids) {
    if (std::ranges::find(found.missing, channel) == found.missing.end()) {
      answer.imex_channels.push_back(channel);
      continue;
    }
    const std::string path = fmt::format("/dev/nvidia-caps-imex-channels/channel{}", channel);
    if (settings.imex.required) {
      answer.trouble =
          fmt::format("the IMEX channel {} is required and {} is missing", channel, path);
    } else if (!settings.plugin.uses_cdi()) {  // else it is said where the class is dropped
      answer.warnings.push_back(
          fmt::format("IMEX channel {} is configured and {} is missing: containers do not get it",
                      channel, path));
    }
  }
}

void Handout::FindMissingNodes(const config::Settings& settings,
                               const inventory::Inventory* inventory, Answer& answer) const {
  if (!settings.plugin.pass_device_specs || !settings.plugin.uses_non_cdi()) return;
  // Without any of the driver's nodes this is not the host's /dev: it says nothing of the host.
  if (inventory == nullptr || answer.control_nodes.empty()) return;
  const auto look = [&](const std::string& uuid, const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
      if (devices_.Device(node)) continue;
      answer.device_trouble.try_emplace(
          uuid, fmt::format("its device node {} is missing, and --pass-device-specs hands it to "
                            "containers: they would not start",
                            node));
    }
  };
  for (const inventory::Gpu& gpu : inventory->gpus) {
    look(gpu.uuid(), gpu.device_nodes);
    for (const inventory::MigDevice& mig : gpu.mig) look(mig.nvml.uuid, mig.device_nodes);
  }
}

Handout::Answer Handout::Prepare(const config::Settings& settings,
                                 const std::shared_ptr<const inventory::Inventory>& inventory,
                                 const plugin::HeldDevices& held) {
  Answer answer;
  for (const char* node :
       {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}) {
    if (devices_.Device(node)) answer.control_nodes.emplace_back(node);
  }
  const cdi::Options options = cdi::OptionsFrom(settings, cdi::ProcessEnvironment());
  AddImex(settings, options, answer);
  FindMissingNodes(settings, inventory.get(), answer);
  if (!settings.plugin.uses_cdi() || inventory == nullptr) return answer;
  PublishCdi(settings, options, inventory, held);
  TellCdi(settings);
  answer.cdi_additional = offer_.extras;
  if (settings.plugin.uses_non_cdi()) {
    answer.all_without_cdi = !offer_.trouble.empty();
    for (const auto& [uuid, why] : offer_.troubles) answer.without_cdi.insert(uuid);
    return answer;
  }
  if (answer.trouble.empty()) answer.trouble = offer_.trouble;
  answer.told.insert(told_trouble_);
  for (const std::string& warning : offer_.warnings) {
    if (cdi_warnings_.told(warning)) answer.told.insert(warning);
  }
  for (const auto& [uuid, why] : offer_.troubles) answer.device_trouble[uuid] = why;
  return answer;
}

}  // namespace ndp::node
