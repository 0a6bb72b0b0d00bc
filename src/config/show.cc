#include <fmt/format.h>

#include "config/enum_names.h"
#include "config/load.h"

namespace ndp::config {
namespace {

doc::Value WhereText(const Where& where) { return where.Text(); }

doc::Value Show(const std::vector<DeviceSelector>& selectors) {
  doc::Value list = doc::Value::List();
  for (const DeviceSelector& selector : selectors) list.Append(selector.Text());
  return list;
}

doc::Value Show(const SharedDevices& devices) {
  if (const auto* count = std::get_if<DeviceCount>(&devices)) return count->count;
  if (const auto* list = std::get_if<DeviceList>(&devices)) return Show(list->devices);
  return "all";
}

doc::Value Show(const Sharing& sharing) {
  doc::Value out = doc::Value::Map();
  out.Set("strategy", Name(sharing.strategy));
  out.Set("failRequestsGreaterThanOne", sharing.fail_requests_greater_than_one);
  doc::Value& resources = out.Set("resources", doc::Value::List());
  for (const SharedResource& entry : sharing.resources) {
    doc::Value one = doc::Value::Map();
    one.Set("name", entry.name);
    one.Set("offeredAs", entry.offered_as);
    one.Set("devices", Show(entry.devices));
    one.Set("replicas", entry.replicas);
    one.Set("origin", WhereText(entry.where));
    resources.Append(std::move(one));
  }
  return out;
}

doc::Value Show(const std::vector<NameRule>& rules) {
  doc::Value list = doc::Value::List();
  for (const NameRule& rule : rules) {
    doc::Value one = doc::Value::Map();
    one.Set("pattern", rule.pattern);
    one.Set("resource", rule.resource);
    one.Set("origin", WhereText(rule.where));
    list.Append(std::move(one));
  }
  return list;
}

doc::Value Show(const NameRules& rules) {
  doc::Value out = doc::Value::Map();
  out.Set("gpus", Show(rules.gpus));
  out.Set("mig", Show(rules.mig));
  return out;
}

doc::Value Show(const Devices& devices) {
  doc::Value out = doc::Value::Map();
  out.Set("include", Show(devices.include));
  out.Set("exclude", Show(devices.exclude));
  return out;
}

doc::Value Show(const std::map<std::uint64_t, XidClass>& moved) {
  doc::Value out = doc::Value::Map();
  for (const auto& [xid, xid_class] : moved) out.Set(fmt::to_string(xid), Name(xid_class));
  return out;
}

}  // namespace

std::string Origin::Text() const {
  switch (source) {
    case Source::kFlag:
      return fmt::format("flag {}", name);
    case Source::kEnvironment:
      return fmt::format("environment {}", name);
    case Source::kFile:
      return fmt::format("file: {}", Where{name, line}.Text());
    case Source::kDefault:
      break;
  }
  return "default";
}

namespace {

// Without the places of the file that parts of it name.
doc::Value WithoutOrigins(const doc::Value& value) {
  if (value.is_scalar()) return value;
  doc::Value out = value.is_map() ? doc::Value::Map() : doc::Value::List();
  for (const auto& entry : value.entries()) {
    if (entry.key != "origin") out.Set(entry.key, WithoutOrigins(entry.value));
  }
  for (const doc::Value& item : value.items()) out.Append(WithoutOrigins(item));
  return out;
}

}  // namespace

doc::Value Changes(const Loaded& before, const Loaded& now) {
  const doc::Value old = ToJson(before);
  const doc::Value all = ToJson(now);
  doc::Value changes = doc::Value::Map();
  for (const auto& entry : all.entries()) {
    const doc::Value* former = old.Find(entry.key);
    if (former == nullptr || WithoutOrigins(*former) == WithoutOrigins(entry.value)) continue;
    doc::Value& change = changes.Set(entry.key, entry.value);
    change.Set("was", *former->Find("value"));
  }
  return changes;
}

doc::Value ToJson(const Loaded& loaded) {
  doc::Value out = doc::Value::Map();
  const auto add = [&](std::string_view id, doc::Value value) {
    doc::Value& one = out.Set(id, doc::Value::Map());
    one.Set("value", std::move(value));
    const auto origin = loaded.origins.find(id);
    one.Set("origin", origin == loaded.origins.end() ? "default" : origin->second.Text());
  };
  for (const Option* option : OptionsOf(loaded.program)) {
    add(option->id(), option->bind.show(loaded.settings));
  }
  if (loaded.program == Program::kConfigManager) return out;
  add("sharing", Show(loaded.settings.sharing));
  add("resources", Show(loaded.settings.names));
  add("devices", Show(loaded.settings.devices));
  if (loaded.program == Program::kDevicePlugin) {
    add("health.xids", Show(loaded.settings.health.xids.moved));
  }
  return out;
}

}  // namespace ndp::config
