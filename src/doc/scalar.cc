#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "doc/yaml.h"

namespace ndp::doc {
namespace {

template <typename Words>
bool IsOneOf(std::string_view text, const Words& words) {
  for (std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

// YAML 1.1's words, less the single letters: `y` and `n` are more often texts.
constexpr std::array kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array kTrue = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
constexpr std::array kFalse = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  if (digits.starts_with("0x")) {
    const auto value = digits.size() > 2 ? ParseHex(digits) : std::nullopt;
    if (!value || *value > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    const auto number = static_cast<std::int64_t>(*value);
    return text[0] == '-' ? -number : number;
  }
  // 010 is 8 to one reader and 10 to another: a text, so that nobody guesses.
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  return ParseSigned(text[0] == '+' ? digits : text);
}

std::optional<double> ParseFloat(std::string_view text) {
  if (EqualsIgnoreCase(text, ".nan")) return std::numeric_limits<double>::quiet_NaN();
  if (EqualsIgnoreCase(text, ".inf") || EqualsIgnoreCase(text, "+.inf")) {
    return std::numeric_limits<double>::infinity();
  }
  if (EqualsIgnoreCase(text, "-.inf")) return -std::numeric_limits<double>::infinity();
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') {
    return std::nullopt;
  }
  double value = 0;
  const auto [at, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || at != text.end()) return std::nullopt;
  return value;
}

}  // namespace

Value ResolvePlainScalar(std::string_view text) {
  if (IsOneOf(text, kNull)) return {};
  Value value;
  if (IsOneOf(text, kTrue)) {
    value = true;
  } else if (IsOneOf(text, kFalse)) {
    value = false;
  } else if (const auto integer = ParseInteger(text)) {
    value = *integer;
  } else if (const auto number = ParseFloat(text)) {
    value = *number;
  } else {
    return text;
  }
  value.set_source_text(std::string(text));
  return value;
}

}  // namespace ndp::doc
