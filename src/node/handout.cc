#include "node/handout.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "cdi/build.h"

namespace ndp::node {
namespace {

std::set<std::string> HeldUuids(const plugin::HeldDevices& held) {
  std::set<std::string> uuids;
  for (const std::string& resource : held.Resources()) {
    for (const std::string& id : held.Ids(resource)) uuids.emplace(StripReplica(id));
  }
  return uuids;
}

}  // namespace

void Handout::PublishCdi(const config::Settings& settings,
                         const std::shared_ptr<const inventory::Inventory>& inventory,
                         const plugin::HeldDevices& held) {
  const cdi::Options options = cdi::OptionsFrom(settings, cdi::ProcessEnvironment());
  const std::set<std::string> uuids = HeldUuids(held);
  const cdi::SpecDir dir(settings.cdi.spec_dir);
  const bool same = inventory == inventory_ && options == options_ && uuids == held_ &&
                    settings.cdi.spec_dir == folder_;
  bool gone = false;
  if (same && !offer_.names.empty()) {
    std::error_code ec;
    gone = !std::filesystem::exists(dir.FileOf(fmt::format("{}/{}", cdi::kVendor, cdi::kGpuClass)),
                                    ec);
  }
  if (same && !gone && offer_.trouble.empty()) return;
  if (!removed_disabled_) {
    removed_disabled_ = true;
    for (const auto& file : dir.RemoveDisabled(cdi::EnabledClasses(options))) {
      log::Info("removed the CDI file of a class that is disabled", {{"file", file.string()}});
    }
  }
  const cdi::Offer before =
      std::exchange(offer_, cdi::Publish(dir, options, *inventory,
                                         cdi::Build(options, *inventory, driver_, host_), uuids));
  inventory_ = inventory;
  options_ = options;
  folder_ = settings.cdi.spec_dir;
  held_ = uuids;
  for (const std::string& warning : offer_.warnings) {
    if (std::ranges::find(before.warnings, warning) == before.warnings.end()) log::Warning(warning);
  }
  if (!offer_.trouble.empty() && offer_.trouble != before.trouble) {
    log::Error("CDI files cannot be had", {{"why", offer_.trouble}});
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
  for (const int channel : settings.imex.channel_ids) {
    const std::string path = fmt::format("/dev/nvidia-caps-imex-channels/channel{}", channel);
    if (devices_.Device(path)) {
      answer.imex_channels.push_back(channel);
    } else if (settings.imex.required) {
      answer.trouble =
          fmt::format("the IMEX channel {} is required and {} is missing", channel, path);
    } else {
      answer.warnings.push_back(
          fmt::format("IMEX channel {} is configured and {} is missing: containers do not get it",
                      channel, path));
    }
  }
  if (!settings.plugin.uses_cdi() || inventory == nullptr) return answer;
  PublishCdi(settings, inventory, held);
  // The channels among the extras follow from imex_channels.
  const std::string imex = cdi::OwnName(cdi::kImexClass, "");
  for (const std::string& name : offer_.extras) {
    if (!name.starts_with(imex)) answer.cdi_additional.push_back(name);
  }
  if (settings.plugin.uses_non_cdi()) return answer;  // trouble with CDI is a warning then
  if (!offer_.trouble.empty()) answer.trouble = offer_.trouble;
  for (const auto& [uuid, why] : offer_.troubles) answer.device_trouble[uuid] = why;
  return answer;
}

}  // namespace ndp::node
