#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "cdi/text.h"
#include "doc/value.h"
#include "doc/yaml.h"

namespace ndp::cdi {
namespace {

using doc::Value;

// Reads one map: every key must be taken, and taken once. The first error sticks.
class MapReader {
 public:
  MapReader(const Value& map, std::string path) : map_(map), path_(std::move(path)) {
    if (!map.is_map()) Fail(map, path_, "a map");
  }

  const Value* Take(std::string_view key) {
    taken_.push_back(key);
    const Value* value = map_.Find(key);
    return value != nullptr && value->is_null() ? nullptr : value;
  }

  void Text(std::string_view key, std::string& out) {
    const Value* value = Take(key);
    if (value == nullptr) return;
    auto text = value->AsString();
    if (!text) return Fail(*value, Path(key), "a text");
    out = *text;
  }

  template <typename T>
  void Number(std::string_view key, std::optional<T>& out) {
    const Value* value = Take(key);
    if (value == nullptr) return;
    auto number = value->AsInt();
    if (!number || *number < std::numeric_limits<T>::min() ||
        *number > static_cast<std::int64_t>(std::numeric_limits<T>::max())) {
      return Fail(*value, Path(key), fmt::format("a number of {} bits", sizeof(T) * 8));
    }
    out = static_cast<T>(*number);
  }

  void Number(std::string_view key, std::int64_t& out) {
    std::optional<std::int64_t> number;
    Number(key, number);
    out = number.value_or(0);
  }

  void Bool(std::string_view key, bool& out) {
    const Value* value = Take(key);
    if (value == nullptr) return;
    auto boolean = value->AsBool();
    if (!boolean) return Fail(*value, Path(key), "true or false");
    out = *boolean;
  }

  void Texts(std::string_view key, std::vector<std::string>& out) {
    Each(key, [&](const Value& item, const std::string& path) {
      auto text = item.AsString();
      if (!text) return Fail(item, path, "a text");
      out.push_back(*text);
    });
  }

  void TextMap(std::string_view key, std::map<std::string, std::string>& out) {
    const Value* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_map()) return Fail(*value, Path(key), "a map");
    for (const Value::Entry& entry : value->entries()) {
      auto text = entry.value.AsString();
      if (!text) return Fail(entry.value, Path(key) + "." + entry.key, "a text");
      out[entry.key] = *text;
    }
  }

  template <typename Function>
  void Each(std::string_view key, Function function) {
    const Value* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_list()) return Fail(*value, Path(key), "a list");
    for (std::size_t i = 0; i < value->items().size(); ++i) {
      function(value->items()[i], fmt::format("{}[{}]", Path(key), i));
    }
  }

  std::string Path(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }

  void Fail(const Value& value, const std::string& path, std::string_view want) {
    Add(Error(Code::kInvalidArgument,
              fmt::format("line {}: {}: want {}, not {}", value.line(),
                          path.empty() ? "document" : path, want, doc::KindName(value.kind()))));
  }
  void Add(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  // The outcome, once all known keys have been taken.
  Status Finish() {
    NDP_TRY(status_);
    for (const Value::Entry& entry : map_.entries()) {
      if (std::ranges::find(taken_, entry.key) != taken_.end()) continue;
      std::string hint;
      if (auto near = Nearest(entry.key, taken_)) hint = fmt::format(" (did you mean {}?)", *near);
      return Error(Code::kInvalidArgument,
                   fmt::format("line {}: unknown key {}{}", entry.line, Path(entry.key), hint));
    }
    return {};
  }

 private:
  const Value& map_;
  std::string path_;
  std::vector<std::string_view> taken_;
  Status status_;
};

Status Read(const Value& value, const std::string& path, DeviceNode& node) {
  node.line = {value.line()};
  MapReader map(value, path);
  map.Text("path", node.path);
  map.Text("hostPath", node.host_path);
  map.Text("type", node.type);
  map.Number("major", node.major);
  map.Number("minor", node.minor);
  map.Number("fileMode", node.file_mode);
  map.Text("permissions", node.permissions);
  map.Number("uid", node.uid);
  map.Number("gid", node.gid);
  return map.Finish();
}

Status Read(const Value& value, const std::string& path, NetDevice& device) {
  MapReader map(value, path);
  map.Text("hostInterfaceName", device.host_interface_name);
  map.Text("name", device.name);
  return map.Finish();
}

Status Read(const Value& value, const std::string& path, Hook& hook) {
  hook.line = {value.line()};
  MapReader map(value, path);
  map.Text("hookName", hook.hook_name);
  map.Text("path", hook.path);
  map.Texts("args", hook.args);
  map.Texts("env", hook.env);
  map.Number("timeout", hook.timeout);
  return map.Finish();
}

Status Read(const Value& value, const std::string& path, Mount& mount) {
  mount.line = {value.line()};
  MapReader map(value, path);
  map.Text("hostPath", mount.host_path);
  map.Text("containerPath", mount.container_path);
  map.Texts("options", mount.options);
  map.Text("type", mount.type);
  return map.Finish();
}

Status Read(const Value& value, const std::string& path, IntelRdt& rdt) {
  MapReader map(value, path);
  map.Text("closID", rdt.clos_id);
  map.Text("l3CacheSchema", rdt.l3_cache_schema);
  map.Text("memBwSchema", rdt.mem_bw_schema);
  map.Texts("schemata", rdt.schemata);
  map.Bool("enableMonitoring", rdt.enable_monitoring);
  return map.Finish();
}

Status Read(const Value& value, const std::string& path, Device& device);

template <typename T>
void ReadEntries(MapReader& map, std::string_view key, std::vector<T>& out) {
  map.Each(key, [&](const Value& item, const std::string& path) {
    map.Add(Read(item, path, out.emplace_back()));
  });
}

Status Read(const Value& value, const std::string& path, Edits& edits) {
  edits.line = {value.line()};
  MapReader map(value, path);
  map.Texts("env", edits.env);
  ReadEntries(map, "deviceNodes", edits.device_nodes);
  ReadEntries(map, "netDevices", edits.net_devices);
  ReadEntries(map, "hooks", edits.hooks);
  ReadEntries(map, "mounts", edits.mounts);
  if (const Value* rdt = map.Take("intelRdt")) {
    map.Add(Read(*rdt, map.Path("intelRdt"), edits.intel_rdt.emplace()));
  }
  map.Each("additionalGids", [&](const Value& item, const std::string& item_path) {
    auto gid = item.AsInt();
    if (!gid || *gid < 0 || *gid > std::numeric_limits<std::uint32_t>::max()) {
      return map.Fail(item, item_path, "a group id");
    }
    edits.additional_gids.push_back(static_cast<std::uint32_t>(*gid));
  });
  return map.Finish();
}

Status Read(const Value& value, const std::string& path, Device& device) {
  device.line = {value.line()};
  MapReader map(value, path);
  map.Text("name", device.name);
  map.TextMap("annotations", device.annotations);
  if (const Value* edits = map.Take("containerEdits")) {
    map.Add(Read(*edits, map.Path("containerEdits"), device.edits));
  }
  return map.Finish();
}

}  // namespace

Result<Spec> ParseSpec(std::string_view text) {
  // JSON is YAML, and runtimes too read both with their YAML reader.
  NDP_TRY(Value document, doc::ParseYaml(text));
  Spec spec;
  MapReader map(document, "");
  map.Text("cdiVersion", spec.version);
  map.Text("kind", spec.kind);
  map.TextMap("annotations", spec.annotations);
  ReadEntries(map, "devices", spec.devices);
  if (const Value* edits = map.Take("containerEdits")) {
    map.Add(Read(*edits, "containerEdits", spec.edits));
  }
  NDP_TRY(map.Finish());
  return spec;
}

}  // namespace ndp::cdi
