#include "health/board_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"

namespace ndp::health {

void AddVerdict(doc::Value& entry, const DeviceHealth& device) {
  if (!device.healthy) {
    entry.Set("reason", device.reason);
    entry.Set("class", device.cause_class);
    if (device.xid) entry.Set("xid", *device.xid);
    entry.Set("since", FormatWallTime(device.since));
    entry.Set("count", device.count);
    entry.Set("nextStep", device.next_step);
  }
  if (device.warnings.empty()) return;
  doc::Value& warnings = entry.Set("warnings", doc::Value::List());
  for (const std::string& warning : device.warnings) warnings.Append(warning);
}

doc::Value BoardDocument(const HealthBoard& board) {
  doc::Value out = doc::Value::Map();
  doc::Value driver = doc::Value::Map();
  driver.Set("available", board.driver.available);
  if (!board.driver.available) {
    driver.Set("reason", board.driver.reason);
    driver.Set("since", FormatWallTime(board.driver.since));
    driver.Set("graceOver", board.driver.grace_over);
  }
  out.Set("driver", std::move(driver));
  doc::Value devices = doc::Value::List();
  for (const auto& [uuid, device] : board.devices) {
    doc::Value entry = doc::Value::Map();
    entry.Set("device", uuid);
    if (!device.pci_bus_id.empty()) {
      entry.Set("index", device.index);
      entry.Set("pciBusId", device.pci_bus_id);
    }
    entry.Set("verdict", device.healthy ? "Healthy" : "Unhealthy");
    AddVerdict(entry, device);
    devices.Append(std::move(entry));
  }
  out.Set("devices", std::move(devices));
  return out;
}

namespace {

const std::vector<doc::Value>& Items(const doc::Value& map, std::string_view key) {
  static const std::vector<doc::Value> none;
  const doc::Value* list = map.Find(key);
  return list != nullptr && list->is_list() ? list->items() : none;
}

// What is healthy and not handed out all the same.
std::string HandedOutText(const doc::Value& document) {
  std::string out;
  for (const doc::Value& resource : Items(document, "resources")) {
    out += fmt::format("{}: {} listed, {} Healthy\n", resource.TextAt("name"),
                       resource.TextAt("capacity"), resource.TextAt("healthy"));
    for (const doc::Value& held : Items(resource, "withheld")) {
      out += fmt::format("      {} not handed out ({}{}): {}\n", held.TextAt("count"),
                         held.TextAt("first"), held.TextAt("count") == "1" ? "" : ", …",
                         held.TextAt("reason"));
    }
  }
  if (document.Find("resources") != nullptr && Items(document, "resources").empty()) {
    out += "no resource is offered\n";
  }
  for (const doc::Value& device : Items(document, "notOffered")) {
    out += fmt::format("not offered: {:>4}  {}  {}\n", device.TextAt("index"),
                       device.TextAt("uuid"), device.TextAt("reason"));
  }
  return out;
}

}  // namespace

std::string BoardText(const doc::Value& document) {
  std::string out;
  if (document.TextAt("released") == "true") {
    out += fmt::format(
        "released since {}: the driver is closed and nothing is watched until ndp resume\n",
        document.TextAt("releasedSince"));
  }
  if (const doc::Value* driver = document.Find("driver");
      driver != nullptr && driver->TextAt("available") == "false") {
    out += fmt::format("driver: not available since {}: {}\n", driver->TextAt("since"),
                       driver->TextAt("reason"));
  }
  const doc::Value* devices = document.Find("devices");
  if (devices == nullptr) return out + HandedOutText(document);
  // People count GPUs: by index, those that are gone without one last.
  std::vector<const doc::Value*> by_index;
  for (const doc::Value& device : devices->items()) by_index.push_back(&device);
  const auto place = [](const doc::Value* device) {
    const std::string index = device->TextAt("index");
    const std::vector<std::string_view> parts = Split(index, ':');
    const auto gpu = ParseUnsigned(parts.front());
    const auto slot = parts.size() > 1 ? ParseUnsigned(parts[1]) : std::nullopt;
    return std::pair(gpu.value_or(~std::uint64_t{}), slot ? *slot + 1 : 0);
  };
  std::ranges::stable_sort(by_index, {}, place);
  for (const doc::Value* each : by_index) {
    const doc::Value& device = *each;
    const std::string verdict = device.TextAt("verdict");
    const std::string index = device.TextAt("index");
    out +=
        fmt::format("{:>4}  {}  {}", index.empty() ? "-" : index, device.TextAt("device"), verdict);
    if (verdict != "Healthy") {
      const std::string pci = device.TextAt("pciBusId");
      out += fmt::format("  {}\n      {}class {}, since {}, seen {}x\n      next: {}",
                         device.TextAt("reason"), pci.empty() ? "" : pci + ", ",
                         device.TextAt("class"), device.TextAt("since"), device.TextAt("count"),
                         device.TextAt("nextStep"));
    }
    out += "\n";
    if (const doc::Value* warnings = device.Find("warnings")) {
      for (const doc::Value& warning : warnings->items()) {
        out += fmt::format("      warning: {}\n", warning.Text());
      }
    }
  }
  return out + HandedOutText(document);
}

}  // namespace ndp::health
