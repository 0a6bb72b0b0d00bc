#include "base/duration.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace ndp {
namespace {

struct Unit {
  std::string_view name;
  double nanos;
};

// Longest names first: "ms" before "m".
constexpr Unit kUnits[] = {{"ns", 1},   {"us", 1e3}, {"\xC2\xB5s", 1e3}, {"\xCE\xBCs", 1e3},
                           {"ms", 1e6}, {"s", 1e9},  {"m", 60e9},        {"h", 3600e9}};

constexpr double kLongest = static_cast<double>(std::numeric_limits<std::int64_t>::max()) / 2;

Error Bad(std::string_view text) {
  return {
      Code::kInvalidArgument,
      fmt::format("invalid duration \"{}\": want a number with a unit, such as 30s, 1m30s or 250ms",
                  text)};
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text) {
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return Duration::zero();
  if (rest.empty()) return Bad(text);
  double total = 0;
  while (!rest.empty()) {
    double value = 0;
    double scale = 1;
    bool digits = false;
    bool fraction = false;
    std::size_t i = 0;
    for (; i < rest.size(); ++i) {
      const char c = rest[i];
      if (c == '.' && !fraction) {
        fraction = true;
      } else if (c >= '0' && c <= '9') {
        digits = true;
        if (fraction) {
          scale /= 10;
          value += (c - '0') * scale;
        } else {
          value = value * 10 + (c - '0');
        }
      } else {
        break;
      }
    }
    if (!digits) return Bad(text);
    rest.remove_prefix(i);
    const Unit* unit = nullptr;
    for (const Unit& u : kUnits) {
      if (rest.starts_with(u.name)) {
        unit = &u;
        break;
      }
    }
    if (unit == nullptr) return Bad(text);
    rest.remove_prefix(unit->name.size());
    total += value * unit->nanos;
  }
  if (total > kLongest) {
    return Error(Code::kInvalidArgument,
                 fmt::format("invalid duration \"{}\": too long: want at most {:.0f}h", text,
                             std::floor(kLongest / 3600e9)));
  }
  const auto nanos = static_cast<std::int64_t>(std::llround(total));
  return Duration(negative ? -nanos : nanos);
}

std::string FormatDuration(Duration duration) {
  std::int64_t nanos = duration.count();
  if (nanos == 0) return "0s";
  std::string out;
  if (nanos < 0) {
    out = "-";
    nanos = -nanos;
  }
  const auto trimmed = [](double value, std::string_view unit) {
    std::string text = fmt::format("{:.9f}", value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text.append(unit);
  };
  if (nanos < 1000) return out + fmt::format("{}ns", nanos);
  if (nanos < 1000000) return out + trimmed(static_cast<double>(nanos) / 1e3, "\xC2\xB5s");
  if (nanos < 1000000000) return out + trimmed(static_cast<double>(nanos) / 1e6, "ms");
  constexpr std::int64_t kMinute = 60'000'000'000;
  const std::int64_t hours = nanos / (60 * kMinute);
  const std::int64_t minutes = nanos / kMinute % 60;
  if (hours > 0) out += fmt::format("{}h", hours);
  if (hours > 0 || minutes > 0) out += fmt::format("{}m", minutes);
  return out + trimmed(static_cast<double>(nanos % kMinute) / 1e9, "s");
}

}  // namespace ndp
