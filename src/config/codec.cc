#include "config/codec.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/duration.h"
#include "base/text.h"

namespace ndp::config {

Error BadValue(std::string_view value, std::string_view want) {
  return {Code::kInvalidArgument, fmt::format("invalid value \"{}\": want {}", value, want)};
}

Error UnknownChoice(std::string_view value, const std::vector<std::string_view>& choices) {
  std::string message =
      fmt::format("unknown value \"{}\": want one of {}", value, fmt::join(choices, ", "));
  if (const auto nearest = Nearest(value, choices)) {
    message += fmt::format(" (did you mean \"{}\"?)", *nearest);
  }
  return {Code::kInvalidArgument, std::move(message)};
}

Result<bool> Codec<bool>::Parse(const Values& values, Warnings& /*warnings*/) {
  const std::string& text = values.back();
  for (std::string_view yes : {"true", "t", "1"}) {
    if (EqualsIgnoreCase(text, yes)) return true;
  }
  for (std::string_view no : {"false", "f", "0"}) {
    if (EqualsIgnoreCase(text, no)) return false;
  }
  return BadValue(text, "true or false");
}

Result<int> Codec<int>::Parse(const Values& values, Warnings& /*warnings*/) {
  const auto value = ParseSigned(values.back());
  if (!value || *value < std::numeric_limits<int>::min() ||
      *value > std::numeric_limits<int>::max()) {
    return BadValue(values.back(), "a whole number");
  }
  return static_cast<int>(*value);
}

Result<double> Codec<double>::Parse(const Values& values, Warnings& /*warnings*/) {
  const std::string& text = values.back();
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || at != end || !std::isfinite(value)) {
    return BadValue(text, "a number");
  }
  return value;
}

Result<Duration> Codec<Duration>::Parse(const Values& values, Warnings& /*warnings*/) {
  return ParseDuration(values.back());
}

doc::Value Codec<Duration>::Show(Duration value) { return FormatDuration(value); }

Result<std::optional<Duration>> Codec<std::optional<Duration>>::Parse(const Values& values,
                                                                      Warnings& warnings) {
  if (values.back() == "infinite") return std::optional<Duration>();
  // Upstream reads a bare number as nanoseconds, which is hardly ever what was meant.
  if (const auto nanos = ParseSigned(values.back()); nanos && *nanos != 0) {
    warnings.push_back(fmt::format("{} has no unit and means {}: write a unit, such as 60s",
                                   values.back(), FormatDuration(Duration(*nanos))));
    return std::optional(Duration(*nanos));
  }
  NDP_TRY(const Duration value, ParseDuration(values.back()));
  return std::optional(value);
}

doc::Value Codec<std::optional<Duration>>::Show(std::optional<Duration> value) {
  return value ? FormatDuration(*value) : "infinite";
}

Result<std::vector<int>> Codec<std::vector<int>>::Parse(const Values& values, Warnings& warnings) {
  std::vector<int> out;
  for (const std::string& text : values) {
    NDP_TRY(const int value, Codec<int>::Parse({text}, warnings));
    out.push_back(value);
  }
  return out;
}

doc::Value Codec<std::vector<int>>::Show(const std::vector<int>& value) {
  return std::vector<doc::Value>(value.begin(), value.end());
}

Result<XidSelection> Codec<XidSelection>::Parse(const Values& values, Warnings& warnings) {
  XidSelection out;
  for (const std::string& text : values) {
    if (EqualsIgnoreCase(text, "all") || EqualsIgnoreCase(text, "xids")) {
      out.all = true;
    } else if (const auto xid = ParseUnsigned(text)) {
      out.xids.insert(*xid);
    } else {
      // As upstream: the rest of the list still counts.
      warnings.push_back(fmt::format("\"{}\" is ignored: want XID numbers, all or xids", text));
    }
  }
  return out;
}

doc::Value Codec<XidSelection>::Show(const XidSelection& value) {
  doc::Value list = doc::Value::List();
  if (value.all) list.Append("all");
  for (const std::uint64_t xid : value.xids) list.Append(xid);
  return list;
}

Result<std::set<CdiFeature>> Codec<std::set<CdiFeature>>::Parse(const Values& values,
                                                                Warnings& warnings) {
  std::set<CdiFeature> out;
  for (const std::string& text : values) {
    if (text == "disable-nvsandbox-utils") {  // its old spelling
      out.insert(CdiFeature::kDisableNvsandboxutils);
    } else if (const auto feature = FromName<CdiFeature>(text)) {
      out.insert(*feature);
    } else {
      warnings.push_back(UnknownChoice(text, AllNames<CdiFeature>()).message() + "; ignored");
    }
  }
  return out;
}

doc::Value Codec<std::set<CdiFeature>>::Show(const std::set<CdiFeature>& value) {
  doc::Value list = doc::Value::List();
  for (const CdiFeature feature : value) list.Append(Name(feature));
  return list;
}

Result<ListenAddress> Codec<ListenAddress>::Parse(const Values& values, Warnings& /*warnings*/) {
  constexpr std::string_view kWant =
      "host:port, :port, or the absolute path of a unix socket; empty is off";
  constexpr std::size_t kMaxUnixPath = 107;  // sun_path less its NUL
  std::string_view text = values.back();
  ListenAddress out;
  if (text.empty()) return out;
  if (text.starts_with("unix:")) {
    text.remove_prefix(5);
    if (text.starts_with("//")) text.remove_prefix(2);
    if (!text.starts_with('/')) return BadValue(values.back(), kWant);
  }
  if (text.starts_with('/')) {
    if (text.size() > kMaxUnixPath || text.ends_with('/')) {
      return BadValue(values.back(),
                      fmt::format("a socket path of at most {} bytes", kMaxUnixPath));
    }
    out.unix_path = text;
    return out;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return BadValue(values.back(), kWant);
  const auto port = ParseUnsigned(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (!port || *port == 0 || *port > 65535) return BadValue(values.back(), kWant);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return BadValue(values.back(), "an IPv6 address in brackets, such as [::1]:9440");
  }
  out.host = host;
  out.port = static_cast<std::uint16_t>(*port);
  return out;
}

doc::Value Codec<ListenAddress>::Show(const ListenAddress& value) {
  if (value.off()) return "";
  if (!value.unix_path.empty()) return value.unix_path;
  const bool brackets = value.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", value.host, brackets ? "]" : "", value.port);
}

}  // namespace ndp::config
