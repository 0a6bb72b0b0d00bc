#include "resource/mig_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.h"

namespace ndp::resource {
namespace {

constexpr std::string_view kNoMigDevices = "none";
constexpr std::string_view kUnknownProfile = "unknown";

bool Servable(std::string_view layout) {
  return layout != kNoMigDevices && layout != kUnknownProfile &&
         layout.find(',') == std::string_view::npos;
}

std::string Describe(std::string_view layout) {
  if (layout.empty()) return "no MIG";
  if (layout == kNoMigDevices) return "MIG mode without MIG devices";
  if (layout == kUnknownProfile) return "a MIG profile that cannot be told";
  return "MIG " + std::string(layout);
}

struct Camp {
  std::string layout;
  std::vector<std::string> gpus;  // indices
};

// "no MIG on GPU 0, MIG 1g.10gb on GPUs 1, 2"
std::string Describe(const std::vector<Camp>& camps) {
  std::string text;
  for (const Camp& camp : camps) {
    text += fmt::format("{}{} on GPU{} {}", text.empty() ? "" : ", ", Describe(camp.layout),
                        camp.gpus.size() > 1 ? "s" : "", Join(camp.gpus, ", "));
  }
  return text;
}

// In the order of the first GPU of each.
std::vector<Camp> Camps(const inventory::Inventory& inventory, std::span<const int> gpus,
                        bool with_trouble) {
  std::vector<Camp> camps;
  for (const int position : gpus) {
    const inventory::Gpu& gpu = inventory.gpus[static_cast<std::size_t>(position)];
    if (!with_trouble && (!gpu.trouble.empty() || gpu.nvml.mig_failure)) continue;
    const std::string layout = LayoutOf(gpu);
    auto camp = std::ranges::find(camps, layout, &Camp::layout);
    if (camp == camps.end()) camp = camps.insert(camps.end(), {layout, {}});
    camp->gpus.push_back(std::to_string(gpu.index()));
  }
  return camps;
}

}  // namespace

std::string LayoutOf(const inventory::Gpu& gpu) {
  if (!gpu.mig_enabled()) return "";
  if (gpu.mig.empty()) return std::string(kNoMigDevices);
  std::set<std::string> profiles;
  for (const inventory::MigDevice& mig : gpu.mig) {
    profiles.insert(mig.profile.empty() ? std::string(kUnknownProfile) : mig.profile);
  }
  return Join(std::vector<std::string>(profiles.begin(), profiles.end()), ",");
}

MigLayouts LayoutsOf(const inventory::Inventory& inventory) {
  MigLayouts layouts;
  for (const inventory::Gpu& gpu : inventory.gpus) layouts[gpu.uuid()] = LayoutOf(gpu);
  return layouts;
}

SingleDecision DecideSingle(const inventory::Inventory& inventory, std::span<const int> gpus,
                            config::MigSinglePartial partial, const MigLayouts& layouts,
                            const MigLayouts* previous_scan) {
  std::vector<Camp> camps = Camps(inventory, gpus, false);
  if (camps.empty()) camps = Camps(inventory, gpus, true);
  if (camps.empty()) return {};
  const std::string seen = Describe(camps);
  if (camps.size() == 1) {
    if (!Servable(camps[0].layout)) {
      return {
          .served = std::nullopt,
          .reason = fmt::format("mig-strategy single serves one MIG profile: there is {}", seen)};
    }
    return {.served = camps[0].layout,
            .reason = fmt::format("its MIG layout differs from the other GPUs': {}", seen)};
  }
  const std::string differs =
      fmt::format("mig-strategy single serves GPUs of one MIG layout: there is {}", seen);
  if (partial != config::MigSinglePartial::kMajority) {
    return {.served = std::nullopt, .reason = differs};
  }
  // Of equally many the one with the lowest GPU.
  const auto most =
      std::ranges::max_element(camps, {}, [](const Camp& camp) { return camp.gpus.size(); });
  if (!Servable(most->layout)) {
    return {.served = std::nullopt, .reason = differs + "; most GPUs have none that can be served"};
  }
  if (previous_scan == nullptr || *previous_scan != layouts) {
    return {
        .served = std::nullopt,
        .reason = differs + "; most GPUs' layout is served once a second scan has seen the same"};
  }
  return {.served = most->layout,
          .reason = fmt::format("mig-single-partial majority serves {}: there is {}",
                                Describe(most->layout), seen)};
}

}  // namespace ndp::resource
