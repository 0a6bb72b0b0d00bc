#include "config/selector.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "base/ids.h"
#include "base/text.h"

namespace ndp::config {
namespace {

constexpr std::uint64_t kMaxIndex = 1023;

struct Suffix {
  std::string_view text;
  std::uint64_t factor;
};
// Longest first: "Gi" before "G".
constexpr Suffix kSuffixes[] = {
    {"Ki", 1ULL << 10}, {"Mi", 1ULL << 20}, {"Gi", 1ULL << 30},   {"Ti", 1ULL << 40},
    {"k", 1'000},       {"M", 1'000'000},   {"G", 1'000'000'000}, {"T", 1'000'000'000'000}};

std::string MemoryText(std::uint64_t bytes) {
  if (bytes % (1ULL << 30) == 0) return fmt::format("{}Gi", bytes >> 30);
  if (bytes % (1ULL << 20) == 0) return fmt::format("{}Mi", bytes >> 20);
  return fmt::to_string(bytes);
}

struct ConditionText {
  std::string operator()(const GpuIndex& it) const { return fmt::to_string(it.index); }
  std::string operator()(const MigIndex& it) const { return fmt::format("{}:{}", it.gpu, it.mig); }
  std::string operator()(const DeviceUuid& it) const { return it.text; }
  std::string operator()(const PciBusId& it) const { return it.text; }
  std::string operator()(const NamePattern& it) const {
    return fmt::format("name \"{}\"", it.text);
  }
  std::string operator()(const MinMemory& it) const {
    return fmt::format("at least {}", MemoryText(it.bytes));
  }
};

std::optional<int> ParseIndex(std::string_view text) {
  const auto value = ParseUnsigned(text);
  if (!value || *value > kMaxIndex) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

std::string Where::Text() const {
  return line > 0 ? fmt::format("{} (line {})", key_path, line) : key_path;
}

std::string DeviceSelector::Text() const {
  std::string out;
  for (const Condition& condition : conditions) {
    if (!out.empty()) out += " and ";
    out += std::visit(ConditionText{}, condition);
  }
  return out;
}

Result<Condition> ParseDeviceName(std::string_view text) {
  if (const auto index = ParseIndex(text)) return Condition(GpuIndex{*index});
  if (IsOwnIdForm(text) && StripReplica(text) == text) {
    return Condition(DeviceUuid{std::string(text)});
  }
  if (const auto parts = Split(text, ':'); parts.size() == 2) {
    const auto gpu = ParseIndex(parts[0]);
    const auto mig = ParseIndex(parts[1]);
    if (gpu && mig) return Condition(MigIndex{*gpu, *mig});
  }
  if (auto pci = NormalizePciBusId(text)) return Condition(PciBusId{*std::move(pci)});
  return Error(Code::kInvalidArgument,
               fmt::format("\"{}\" names no device: want an index such as 0, a MIG index such as "
                           "1:0, a UUID (GPU-… or MIG-…) or a PCI bus id such as 0000:07:00.0",
                           text));
}

Result<std::uint64_t> ParseMemory(std::string_view text) {
  std::string_view digits = text;
  std::uint64_t factor = 1;
  for (const Suffix& suffix : kSuffixes) {
    if (text.ends_with(suffix.text)) {
      digits.remove_suffix(suffix.text.size());
      factor = suffix.factor;
      break;
    }
  }
  const auto value = ParseUnsigned(digits);
  if (!value || *value == 0 || *value > std::numeric_limits<std::uint64_t>::max() / factor) {
    return Error(Code::kInvalidArgument,
                 fmt::format("\"{}\" is no amount of memory: want a whole number with a unit, such "
                             "as 40Gi or 16000Mi",
                             text));
  }
  return *value * factor;
}

}  // namespace ndp::config
