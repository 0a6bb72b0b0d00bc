#include "cdi/text.h"
#include "doc/json.h"
#include "doc/value.h"
#include "doc/yaml.h"

namespace ndp::cdi {
namespace {

using doc::Value;

void SetText(Value& map, std::string_view key, const std::string& text) {
  if (!text.empty()) map.Set(key, text);
}

template <typename T>
void SetNumber(Value& map, std::string_view key, std::optional<T> number) {
  if (number) map.Set(key, *number);
}

void SetTexts(Value& map, std::string_view key, const std::vector<std::string>& texts) {
  if (!texts.empty()) map.Set(key, std::vector<Value>(texts.begin(), texts.end()));
}

void SetAnnotations(Value& map, const std::map<std::string, std::string>& annotations) {
  if (annotations.empty()) return;
  Value& out = map.Set("annotations", Value::Map());
  for (const auto& [key, value] : annotations) out.Set(key, value);
}

Value ToValue(const DeviceNode& node) {
  Value out = Value::Map();
  out.Set("path", node.path);
  SetText(out, "hostPath", node.host_path);
  SetText(out, "type", node.type);
  // Zero is not written: runtimes then take the number from the node.
  if (node.major != 0) out.Set("major", node.major);
  if (node.minor != 0) out.Set("minor", node.minor);
  SetNumber(out, "fileMode", node.file_mode);
  SetText(out, "permissions", node.permissions);
  SetNumber(out, "uid", node.uid);
  SetNumber(out, "gid", node.gid);
  return out;
}

Value ToValue(const NetDevice& device) {
  Value out = Value::Map();
  out.Set("hostInterfaceName", device.host_interface_name);
  out.Set("name", device.name);
  return out;
}

Value ToValue(const Hook& hook) {
  Value out = Value::Map();
  out.Set("hookName", hook.hook_name);
  out.Set("path", hook.path);
  SetTexts(out, "args", hook.args);
  SetTexts(out, "env", hook.env);
  SetNumber(out, "timeout", hook.timeout);
  return out;
}

Value ToValue(const Mount& mount) {
  Value out = Value::Map();
  out.Set("hostPath", mount.host_path);
  out.Set("containerPath", mount.container_path);
  SetTexts(out, "options", mount.options);
  SetText(out, "type", mount.type);
  return out;
}

Value ToValue(const IntelRdt& rdt) {
  Value out = Value::Map();
  SetText(out, "closID", rdt.clos_id);
  SetText(out, "l3CacheSchema", rdt.l3_cache_schema);
  SetText(out, "memBwSchema", rdt.mem_bw_schema);
  SetTexts(out, "schemata", rdt.schemata);
  if (rdt.enable_monitoring) out.Set("enableMonitoring", true);
  return out;
}

template <typename T>
void SetEntries(Value& map, std::string_view key, const std::vector<T>& entries) {
  if (entries.empty()) return;
  Value& out = map.Set(key, Value::List());
  for (const T& entry : entries) out.Append(ToValue(entry));
}

Value ToValue(const Edits& edits) {
  Value out = Value::Map();
  SetTexts(out, "env", edits.env);
  SetEntries(out, "deviceNodes", edits.device_nodes);
  SetEntries(out, "netDevices", edits.net_devices);
  SetEntries(out, "hooks", edits.hooks);
  SetEntries(out, "mounts", edits.mounts);
  if (edits.intel_rdt) out.Set("intelRdt", ToValue(*edits.intel_rdt));
  if (!edits.additional_gids.empty()) {
    out.Set("additionalGids",
            std::vector<Value>(edits.additional_gids.begin(), edits.additional_gids.end()));
  }
  return out;
}

Value ToValue(const Spec& spec) {
  Value out = Value::Map();
  out.Set("cdiVersion", spec.version);
  out.Set("kind", spec.kind);
  SetAnnotations(out, spec.annotations);
  Value& devices = out.Set("devices", Value::List());
  for (const Device& device : spec.devices) {
    Value entry = Value::Map();
    entry.Set("name", device.name);
    SetAnnotations(entry, device.annotations);
    entry.Set("containerEdits", ToValue(device.edits));
    devices.Append(std::move(entry));
  }
  out.Set("containerEdits", ToValue(spec.edits));
  return out;
}

}  // namespace

std::string ToJson(const Spec& spec) {
  // Go's encoder escapes these three, which JSON has nowhere but in texts.
  std::string escaped;
  for (char c : doc::ToJson(ToValue(spec))) {
    switch (c) {
      case '<':
        escaped += "\\u003c";
        break;
      case '>':
        escaped += "\\u003e";
        break;
      case '&':
        escaped += "\\u0026";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string ToYaml(const Spec& spec) { return "---\n" + doc::ToYaml(ToValue(spec)); }

}  // namespace ndp::cdi
