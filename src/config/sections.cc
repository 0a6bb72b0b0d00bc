#include "config/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/enum_names.h"
#include "config/resource_name.h"

namespace ndp::config {
namespace {

Result<std::vector<NameRule>> ReadRules(const Node& list, NamingSwitch& naming) {
  std::vector<NameRule> rules;
  NDP_TRY(const std::vector<Node> items, list.Items());
  for (const Node& item : items) {
    if (!item.set() || !item.value().is_map()) {
      return item.WrongType("a map with pattern and name");
    }
    NDP_TRY(const Node pattern, item.At("pattern"));
    NDP_TRY(const Node name, item.At("name"));
    if (!pattern.set()) return item.Bad("has no pattern: want one such as \"*A100*\"");
    if (!name.set()) return item.Bad("has no name: want a resource such as nvidia.com/a100");
    NameRule rule{.where = item.where(), .pattern = {}, .resource = {}};
    NDP_TRY(rule.pattern, pattern.Text());
    if (rule.pattern.empty()) return pattern.Bad("empty: want a pattern such as \"*A100*\"");
    NDP_TRY(const std::string text, name.Text());
    auto resource = ParseResourceName(text);
    if (!resource.ok()) return name.Bad(resource.error().message());
    rule.resource = *std::move(resource);
    const auto same = std::ranges::find(rules, rule.pattern, &NameRule::pattern);
    if (naming.on && same != rules.end()) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{} and {} have the same pattern \"{}\": the first match wins, so "
                               "the second never applies",
                               same->where.Text(), rule.where.Text(), rule.pattern));
    }
    rules.push_back(std::move(rule));
  }
  if (naming.on) return rules;
  for (const NameRule& rule : rules) {
    naming.ignored.push_back(
        fmt::format("{}: \"{}\" as {}", rule.where.Text(), rule.pattern, rule.resource));
  }
  return std::vector<NameRule>();
}

// `0`, GPU-…, a PCI bus id, or a name with a wildcard.
Result<Condition> ParseGpuName(const std::string& text) {
  if (text.find('*') != std::string::npos) return Condition(NamePattern{text});
  auto condition = ParseDeviceName(text);
  if (!condition.ok()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("\"{}\" selects no GPU: want an index, a UUID (GPU-…), a PCI bus id, "
                             "a name with a wildcard such as \"*A100*\", or a map such as "
                             "{{minMemory: 40Gi}}",
                             text));
  }
  const auto* uuid = std::get_if<DeviceUuid>(&*condition);
  if (std::holds_alternative<MigIndex>(*condition) ||
      (uuid != nullptr && uuid->text.starts_with("MIG-"))) {
    return Error(Code::kInvalidArgument,
                 fmt::format("\"{}\" is a MIG device: want a whole GPU", text));
  }
  return condition;
}

// One entry of the map form: {name: "*A100*", minMemory: 40Gi}.
Result<Condition> ParseGpuProperty(const std::string& key, const std::string& text) {
  if (key == "name") {
    if (text.empty()) return Error(Code::kInvalidArgument, "empty: want a name or a pattern");
    return Condition(NamePattern{text});
  }
  if (key == "minMemory") {
    NDP_TRY(const std::uint64_t bytes, ParseMemory(text));
    return Condition(MinMemory{bytes});
  }
  if (key == "pciBusId") {
    if (auto pci = NormalizePciBusId(text)) return Condition(PciBusId{*std::move(pci)});
    return Error(Code::kInvalidArgument,
                 fmt::format("\"{}\" is no PCI bus id: want one such as 0000:07:00.0", text));
  }
  NDP_TRY(Condition condition, ParseGpuName(text));
  const bool right = key == "index" ? std::holds_alternative<GpuIndex>(condition)
                                    : std::holds_alternative<DeviceUuid>(condition);
  if (right) return condition;
  return Error(Code::kInvalidArgument,
               fmt::format("\"{}\": want {}", text,
                           key == "index" ? "an index such as 0" : "a UUID such as GPU-5f3a…"));
}

Result<DeviceSelector> ReadSelector(const Node& node) {
  DeviceSelector out{.where = node.where(), .conditions = {}};
  if (!node.set()) return node.WrongType("a selector");
  if (!node.value().is_map()) {
    NDP_TRY(const std::string text, node.Text());
    auto condition = ParseGpuName(text);
    if (!condition.ok()) return node.Bad(condition.error().message());
    out.conditions.push_back(*std::move(condition));
    return out;
  }
  for (const doc::Value::Entry& entry : node.value().entries()) {
    NDP_TRY(const Node property, node.At(entry.key));
    NDP_TRY(const std::string text, property.Text());
    auto condition = ParseGpuProperty(entry.key, text);
    if (!condition.ok()) return property.Bad(condition.error().message());
    out.conditions.push_back(*std::move(condition));
  }
  if (out.conditions.empty()) {
    return node.Bad(
        "selects by nothing: want one or more of index, uuid, pciBusId, name, minMemory");
  }
  return out;
}

Result<std::vector<DeviceSelector>> ReadSelectors(const Node& list) {
  std::vector<DeviceSelector> out;
  NDP_TRY(const std::vector<Node> items, list.Items());
  for (const Node& item : items) {
    NDP_TRY(DeviceSelector selector, ReadSelector(item));
    out.push_back(std::move(selector));
  }
  return out;
}

Status RefuseEqual(const std::vector<DeviceSelector>& a, const std::vector<DeviceSelector>& b) {
  for (const DeviceSelector& first : a) {
    for (const DeviceSelector& second : b) {
      if (&first == &second || first.conditions != second.conditions) continue;
      return Error(Code::kInvalidArgument,
                   fmt::format("{} and {} select the same: {}", first.where.Text(),
                               second.where.Text(), first.Text()));
    }
  }
  return {};
}

Result<std::uint64_t> ReadXid(const Node& node) {
  constexpr std::int64_t kMaxXid = 65535;
  NDP_TRY(const std::int64_t xid, node.Int());
  if (xid < 1 || xid > kMaxXid) {
    return node.Bad(fmt::format("{}: want an XID from 1 to {}", xid, kMaxXid));
  }
  return static_cast<std::uint64_t>(xid);
}

}  // namespace

Result<NameRules> ReadNameRules(const Node& section, NamingSwitch& naming) {
  NameRules out;
  NDP_TRY(const Node gpus, section.At("gpus"));
  NDP_TRY(const Node mig, section.At("mig"));
  NDP_TRY(out.gpus, ReadRules(gpus, naming));
  NDP_TRY(out.mig, ReadRules(mig, naming));
  return out;
}

Result<Devices> ReadDevices(const Node& section) {
  Devices out;
  NDP_TRY(const Node include, section.At("include"));
  NDP_TRY(const Node exclude, section.At("exclude"));
  NDP_TRY(out.include, ReadSelectors(include));
  NDP_TRY(out.exclude, ReadSelectors(exclude));
  NDP_TRY(RefuseEqual(out.include, out.include));
  NDP_TRY(RefuseEqual(out.exclude, out.exclude));
  NDP_TRY(RefuseEqual(out.include, out.exclude));
  return out;
}

Result<std::map<std::uint64_t, XidClass>> ReadMovedXids(const Node& section) {
  std::map<std::uint64_t, XidClass> moved;
  std::map<std::uint64_t, Where> seen;
  for (const auto& [xid_class, name] : EnumNames<XidClass>::kAll) {
    NDP_TRY(const Node list, section.At(name));
    NDP_TRY(const std::vector<Node> items, list.Items());
    for (const Node& item : items) {
      NDP_TRY(const std::uint64_t xid, ReadXid(item));
      const auto [at, fresh] = seen.emplace(xid, item.where());
      if (!fresh) {
        return Error(Code::kInvalidArgument,
                     fmt::format("{} and {} both name XID {}: want it in one list",
                                 at->second.Text(), item.where().Text(), xid));
      }
      moved.emplace(xid, xid_class);
    }
  }
  return moved;
}

}  // namespace ndp::config
