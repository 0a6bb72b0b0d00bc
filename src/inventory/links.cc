#include "inventory/links.h"

#include <fmt/format.h>

#include <algorithm>

namespace ndp::inventory {
namespace {

constexpr int kAcrossNodes = 50;

unsigned LinksTo(const GpuLinks& from, const std::string& pci_bus_id) {
  return static_cast<unsigned>(std::ranges::count_if(from.nvlinks, [&](const nvml::NvLink& link) {
    return link.end != nvml::LinkEnd::kSwitch && link.remote_pci_bus_id == pci_bus_id;
  }));
}

unsigned SwitchLinks(const GpuLinks& from) {
  return static_cast<unsigned>(
      std::ranges::count(from.nvlinks, nvml::LinkEnd::kSwitch, &nvml::NvLink::end));
}

}  // namespace

GpuLinks ReadGpuLinks(nvml::Driver& driver, const std::vector<LinkTarget>& targets,
                      std::size_t self) {
  GpuLinks out;
  out.ancestors.assign(targets.size(), -1);
  for (std::size_t other = self + 1; other < targets.size(); ++other) {
    auto level = driver.CommonAncestor(targets[self].pci_bus_id, targets[other].pci_bus_id);
    if (level) out.ancestors[other] = *level;
  }
  if (auto links = driver.ActiveLinks(targets[self].pci_bus_id)) out.nvlinks = *std::move(links);
  return out;
}

LinkMatrix BuildLinkMatrix(const std::vector<LinkTarget>& targets,
                           const std::vector<GpuLinks>& links, std::vector<std::string>* warnings) {
  LinkMatrix matrix;
  matrix.complete = true;
  for (std::size_t a = 0; a < targets.size(); ++a) {
    for (std::size_t b = a + 1; b < targets.size(); ++b) {
      LinkMatrix::Pair pair;
      const int level = links[a].ancestors[b];
      pair.ancestor = level >= 0 ? level : kAcrossNodes;
      const unsigned there = LinksTo(links[a], targets[b].pci_bus_id);
      const unsigned back = LinksTo(links[b], targets[a].pci_bus_id);
      if (there != back && warnings != nullptr) {
        warnings->push_back(
            fmt::format("{} counts {} NVLinks to {}, which counts {} back: {} taken",
                        targets[a].uuid, there, targets[b].uuid, back, std::min(there, back)));
      }
      pair.nvlinks = std::min(there, back) + std::min(SwitchLinks(links[a]), SwitchLinks(links[b]));
      matrix.pairs[{targets[a].uuid, targets[b].uuid}] = pair;
      matrix.pairs[{targets[b].uuid, targets[a].uuid}] = pair;
    }
  }
  return matrix;
}

}  // namespace ndp::inventory
