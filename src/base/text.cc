#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace ndp {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsAlnumLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

template <typename T>
std::optional<T> ParseWhole(std::string_view text, int base) {
  T value{};
  const char* end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end is given.
  auto [at, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || at != end || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string Join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != parts.data()) out += separator;
    out += part;
  }
  return out;
}

std::string ToLower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), Lower);
  return out;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

std::optional<std::uint64_t> ParseUnsigned(std::string_view text) {
  return ParseWhole<std::uint64_t>(text, 10);
}

std::optional<std::int64_t> ParseSigned(std::string_view text) {
  return ParseWhole<std::int64_t>(text, 10);
}

std::optional<std::uint64_t> ParseHex(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return ParseWhole<std::uint64_t>(text, 16);
}

bool WildcardMatch(std::string_view pattern, std::string_view text) {
  // The last `*` seen, and where its run ends so far: enough to back up without recursion.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t run_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      run_end = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++run_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<std::string_view> Nearest(std::string_view text,
                                        std::span<const std::string_view> among) {
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(text.size() / 3, 2) + 1;
  for (std::string_view candidate : among) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= text.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t change = Lower(text[i - 1]) == Lower(candidate[j - 1]) ? 0 : 1;
        const std::size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + change});
        diagonal = row[j];
        row[j] = next;
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

bool IsDns1123Subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  return std::ranges::all_of(Split(text, '.'), [](std::string_view label) {
    return !label.empty() && IsAlnumLower(label.front()) && IsAlnumLower(label.back()) &&
           std::ranges::all_of(label, [](char c) { return IsAlnumLower(c) || c == '-'; });
  });
}

std::optional<std::string> NormalizePciBusId(std::string_view text) {
  auto parts = Split(text, ':');
  if (parts.size() == 2) parts.insert(parts.begin(), "0");
  if (parts.size() != 3) return std::nullopt;
  const auto slot = Split(parts[2], '.');
  if (slot.size() != 2) return std::nullopt;
  const auto domain = ParseWhole<std::uint32_t>(parts[0], 16);
  const auto bus = ParseWhole<std::uint32_t>(parts[1], 16);
  const auto device = ParseWhole<std::uint32_t>(slot[0], 16);
  const auto function = ParseWhole<std::uint32_t>(slot[1], 16);
  if (!domain || !bus || !device || !function || *bus > 0xFF || *device > 0x1F || *function > 7) {
    return std::nullopt;
  }
  return fmt::format("{:0{}x}:{:02x}:{:02x}.{:x}", *domain, *domain > 0xFFFF ? 8 : 4, *bus, *device,
                     *function);
}

}  // namespace ndp
