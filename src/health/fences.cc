#include "health/fences.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "doc/yaml.h"

namespace ndp::health {
namespace {

Error At(int line, std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("line {}: {}", line, what)};
}

std::optional<int> Digits(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() < at + count) return std::nullopt;
  const auto number = ParseUnsigned(text.substr(at, count));
  return number ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
}

// "Z", "+01:00" or "-0130" to the span to take off.
std::optional<std::chrono::minutes> Offset(std::string_view text) {
  if (text == "Z" || text == "z") return std::chrono::minutes(0);
  if (text.size() < 5 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const auto hours = Digits(text, 1, 2);
  const bool colon = text[3] == ':';
  const auto minutes = Digits(text, colon ? 4 : 3, 2);
  if (!hours || !minutes || text.size() != (colon ? 6U : 5U)) return std::nullopt;
  const std::chrono::minutes offset(*hours * 60 + *minutes);
  return text[0] == '-' ? -offset : offset;
}

Status SetGpu(Fence& fence, std::string_view key, const doc::Value& value, int line) {
  const std::string text = value.Text();
  // `gpu:` takes any of the three forms.
  if (key == "index" || (key == "gpu" && ParseUnsigned(text))) {
    const auto index = ParseUnsigned(text);
    if (!index || *index > 4096) {
      return At(line, fmt::format("index '{}': give NVML's index of a GPU, such as 3", text));
    }
    fence.index = static_cast<unsigned>(*index);
    return {};
  }
  if (key == "uuid" || (key == "gpu" && IsOwnIdForm(text))) {
    if (!IsOwnIdForm(text)) {
      return At(line, fmt::format("uuid '{}': give GPU-… or MIG-…", text));
    }
    fence.uuid = text;
    return {};
  }
  const auto pci = NormalizePciBusId(text);
  if (!pci) {
    return At(line, fmt::format("{} '{}': give a PCI address such as 0000:07:00.0{}", key, text,
                                key == "gpu" ? ", a UUID or an index" : ""));
  }
  fence.pci_bus_id = *pci;
  return {};
}

Result<Fence> ParseFence(const doc::Value& value) {
  if (!value.is_map()) {
    return At(value.line(), fmt::format("a fence is a map with uuid, index or pci, and reason; "
                                        "this is {}",
                                        doc::KindName(value.kind())));
  }
  Fence fence{.line = value.line()};
  for (const doc::Value::Entry& entry : value.entries()) {
    const std::string key = ToLower(entry.key);
    if (key == "uuid" || key == "index" || key == "gpu" || key == "pci" || key == "pcibusid" ||
        key == "pciid") {
      if (fence.index || !fence.uuid.empty() || !fence.pci_bus_id.empty()) {
        return At(entry.line, "a fence names one GPU: give uuid, index or pci, not several");
      }
      NDP_TRY(SetGpu(fence, key, entry.value, entry.line));
    } else if (key == "reason") {
      if (!entry.value.is_scalar()) return At(entry.line, "reason: give a text");
      fence.reason = entry.value.Text();
    } else if (key == "expires" || key == "expiry") {
      if (entry.value.is_null()) continue;
      fence.expires = ParseWallTime(entry.value.Text());
      if (!fence.expires) {
        return At(entry.line, fmt::format("{} '{}': give a time such as 2026-12-01T08:00:00Z",
                                          entry.key, entry.value.Text()));
      }
    } else {
      return At(entry.line, fmt::format("unknown key '{}': a fence has uuid, index or pci, reason "
                                        "and expires",
                                        entry.key));
    }
  }
  if (!fence.index && fence.uuid.empty() && fence.pci_bus_id.empty()) {
    return At(fence.line, "the fence names no GPU: give uuid, index or pci");
  }
  if (Trim(fence.reason).empty()) fence.reason = "no reason given";
  return fence;
}

}  // namespace

bool Fence::SameGpu(const Fence& other) const {
  return uuid == other.uuid && index == other.index && pci_bus_id == other.pci_bus_id;
}

std::string Fence::Selector() const { return index ? fmt::format("{}", *index) : pci_bus_id; }

std::optional<WallTime> ParseWallTime(std::string_view text) {
  const auto year = Digits(text, 0, 4);
  const auto month = Digits(text, 5, 2);
  const auto day = Digits(text, 8, 2);
  const auto hour = Digits(text, 11, 2);
  const auto minute = Digits(text, 14, 2);
  const auto second = Digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const char between = text[10];
  if (text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':' ||
      (between != 'T' && between != 't' && between != ' ') || *hour > 23 || *minute > 59 ||
      *second > 60) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  std::string_view rest = text.substr(19);
  if (rest.starts_with('.')) {  // fractions of a second are of no weight here
    const std::size_t end = rest.find_first_not_of("0123456789", 1);
    if (end == 1 || end == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(end);
  }
  const auto offset = Offset(rest);
  if (!offset) return std::nullopt;
  const std::chrono::sys_seconds time = std::chrono::sys_days(date) + std::chrono::hours(*hour) +
                                        std::chrono::minutes(*minute) +
                                        std::chrono::seconds(*second) - *offset;
  // Nanoseconds end in 2262: "9999-12-31" means never.
  using std::chrono::floor;
  if (time >= floor<std::chrono::seconds>(WallTime::max())) return WallTime::max();
  if (time <= floor<std::chrono::seconds>(WallTime::min())) return WallTime::min();
  return WallTime(time);
}

Result<std::vector<Fence>> ParseFences(std::string_view yaml) {
  NDP_TRY(const doc::Value document, doc::ParseYaml(yaml));
  const doc::Value* list = &document;
  if (document.is_map()) {
    for (const doc::Value::Entry& entry : document.entries()) {
      if (entry.key != "fences" && entry.key != "version") {
        return At(entry.line,
                  fmt::format("unknown key '{}': the file has one list, fences", entry.key));
      }
    }
    list = document.Find("fences");
  }
  std::vector<Fence> fences;
  if (list == nullptr || list->is_null()) return fences;
  if (!list->is_list()) {
    return At(list->line(),
              fmt::format("fences: give a list; this is {}", doc::KindName(list->kind())));
  }
  for (const doc::Value& item : list->items()) {
    NDP_TRY(Fence fence, ParseFence(item));
    fences.push_back(std::move(fence));
  }
  return fences;
}

std::string ResolveGpu(std::string_view name, const inventory::Inventory& inventory) {
  if (IsOwnIdForm(name)) return std::string(name);
  const inventory::Gpu* gpu = nullptr;
  if (const auto index = ParseUnsigned(name)) {
    gpu = inventory.FindIndex(static_cast<unsigned>(*index));
  } else if (const auto pci = NormalizePciBusId(name)) {
    gpu = inventory.FindPci(*pci);
  }
  return gpu != nullptr ? gpu->uuid() : std::string();
}

void FenceBook::Replace(std::vector<Fence> fences, WallTime now) {
  std::vector<Entry> entries;
  std::map<std::string, std::string> remembered;
  for (Fence& fence : fences) {
    const auto before = std::ranges::find_if(
        entries_, [&](const Entry& entry) { return entry.fence.SameGpu(fence); });
    Entry entry{.fence = std::move(fence), .uuid = {}, .since = now};
    entry.uuid = entry.fence.uuid;
    if (before != entries_.end()) entry.since = before->since;
    if (const auto known = remembered_.find(entry.fence.Selector()); known != remembered_.end()) {
      entry.uuid = known->second;
      remembered.insert(*known);
    }
    entries.push_back(std::move(entry));
  }
  entries_ = std::move(entries);
  remembered_ = std::move(remembered);
}

std::vector<Fence> FenceBook::Resolve(const inventory::Inventory& inventory) {
  std::vector<Fence> unknown;
  for (Entry& entry : entries_) {
    const auto is_meant = [&](const inventory::Gpu& gpu) { return gpu.Has(entry.fence.uuid); };
    if (!entry.fence.uuid.empty() && std::ranges::none_of(inventory.gpus, is_meant)) {
      unknown.push_back(entry.fence);
    }
    if (!entry.uuid.empty()) continue;
    const inventory::Gpu* gpu = entry.fence.index ? inventory.FindIndex(*entry.fence.index)
                                                  : inventory.FindPci(entry.fence.pci_bus_id);
    if (gpu != nullptr) {
      entry.uuid = gpu->uuid();
      remembered_[entry.fence.Selector()] = entry.uuid;
    } else {
      unknown.push_back(entry.fence);
    }
  }
  return unknown;
}

std::map<std::string, Fenced> FenceBook::Active(WallTime now) const {
  std::map<std::string, Fenced> active;
  for (const Entry& entry : entries_) {
    if (entry.uuid.empty() || (entry.fence.expires && *entry.fence.expires <= now)) continue;
    active.try_emplace(entry.uuid, Fenced{.reason = entry.fence.reason, .since = entry.since});
  }
  return active;
}

std::optional<WallTime> FenceBook::NextExpiry(WallTime now) const {
  std::optional<WallTime> next;
  for (const Entry& entry : entries_) {
    const auto& expires = entry.fence.expires;
    if (expires && *expires > now && (!next || *expires < *next)) next = expires;
  }
  return next;
}

}  // namespace ndp::health
