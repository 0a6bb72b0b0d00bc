#include "health/board_document.h"

#include <fmt/format.h>

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
    entry.Set("verdict", device.healthy ? "Healthy" : "Unhealthy");
    AddVerdict(entry, device);
    devices.Append(std::move(entry));
  }
  out.Set("devices", std::move(devices));
  return out;
}

std::string BoardText(const doc::Value& document) {
  const auto text = [](const doc::Value& map, std::string_view key) {
    const doc::Value* value = map.Find(key);
    return value != nullptr ? value->Text() : std::string();
  };
  std::string out;
  if (const doc::Value* driver = document.Find("driver");
      driver != nullptr && text(*driver, "available") == "false") {
    out += fmt::format("driver: not available since {}: {}\n", text(*driver, "since"),
                       text(*driver, "reason"));
  }
  const doc::Value* devices = document.Find("devices");
  if (devices == nullptr) return out;
  for (const doc::Value& device : devices->items()) {
    const std::string verdict = text(device, "verdict");
    out += fmt::format("{}  {}", text(device, "device"), verdict);
    if (verdict != "Healthy") {
      out += fmt::format("  {}\n    class {}, since {}, seen {}x\n    next: {}",
                         text(device, "reason"), text(device, "class"), text(device, "since"),
                         text(device, "count"), text(device, "nextStep"));
    }
    out += "\n";
    if (const doc::Value* warnings = device.Find("warnings")) {
      for (const doc::Value& warning : warnings->items()) {
        out += fmt::format("    warning: {}\n", warning.Text());
      }
    }
  }
  return out;
}

}  // namespace ndp::health
