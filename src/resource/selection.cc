#include "resource/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace ndp::resource {
namespace {

struct ConditionHolds {
  const inventory::Gpu& gpu;

  bool operator()(const config::GpuIndex& it) const {
    return static_cast<unsigned>(it.index) == gpu.index();
  }
  bool operator()(const config::MigIndex&) const { return false; }
  bool operator()(const config::DeviceUuid& it) const { return it.text == gpu.uuid(); }
  bool operator()(const config::PciBusId& it) const { return it.text == gpu.pci_bus_id(); }
  bool operator()(const config::NamePattern& it) const {
    return WildcardMatch(it.text, gpu.name());
  }
  bool operator()(const config::MinMemory& it) const {
    return gpu.nvml.memory_bytes.value_or(0) >= it.bytes;
  }
};

const config::DeviceSelector* FirstMatch(const std::vector<config::DeviceSelector>& selectors,
                                         const inventory::Gpu& gpu) {
  const auto it = std::ranges::find_if(
      selectors, [&gpu](const config::DeviceSelector& selector) { return Matches(selector, gpu); });
  return it == selectors.end() ? nullptr : &*it;
}

// Why the GPU does not count; empty where it does.
std::string WhyExcluded(const config::Devices& devices, const inventory::Gpu& gpu) {
  if (const auto* selector = FirstMatch(devices.exclude, gpu)) {
    return fmt::format("excluded by {}: {}", selector->where.Text(), selector->Text());
  }
  if (!devices.include.empty() && FirstMatch(devices.include, gpu) == nullptr) {
    return "no selector of devices.include matches it";
  }
  return "";
}

}  // namespace

bool Matches(const config::DeviceSelector& selector, const inventory::Gpu& gpu) {
  return std::ranges::all_of(selector.conditions, [&gpu](const config::Condition& condition) {
    return std::visit(ConditionHolds{gpu}, condition);
  });
}

Selection SelectGpus(const config::Devices& devices, const inventory::Inventory& inventory) {
  Selection selection;
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    const inventory::Gpu& gpu = inventory.gpus[i];
    std::string reason = WhyExcluded(devices, gpu);
    if (reason.empty()) {
      selection.gpus.push_back(static_cast<int>(i));
    } else {
      selection.excluded.push_back(
          {.index = std::to_string(gpu.index()), .uuid = gpu.uuid(), .reason = std::move(reason)});
    }
  }
  if (inventory.gpus.empty()) return selection;  // before a driver is there all would be said
  for (const auto* selectors : {&devices.include, &devices.exclude}) {
    for (const config::DeviceSelector& selector : *selectors) {
      const bool matches = std::ranges::any_of(
          inventory.gpus, [&](const inventory::Gpu& gpu) { return Matches(selector, gpu); });
      if (matches) continue;
      selection.warnings.push_back(fmt::format("{}: {} matches no GPU: there are {}",
                                               selector.where.Text(), selector.Text(),
                                               DescribeGpus(inventory)));
    }
  }
  return selection;
}

std::string DescribeGpus(const inventory::Inventory& inventory) {
  if (inventory.gpus.empty()) return "no GPUs";
  std::string text;
  for (const inventory::Gpu& gpu : inventory.gpus) {
    text += fmt::format("{}{} ({}, {}, {})", text.empty() ? "" : ", ", gpu.index(), gpu.uuid(),
                        gpu.pci_bus_id(), gpu.nvml.name.value_or("name unknown"));
  }
  return text;
}

}  // namespace ndp::resource
