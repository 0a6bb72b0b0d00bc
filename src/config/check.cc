#include "config/check.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "base/text.h"
#include "config/codec.h"

namespace ndp::config {

Status AbsolutePath(const std::string& path) {
  if (path.empty() || path.starts_with('/')) return {};
  return BadValue(path, "an absolute path");
}

Status NonEmpty(const std::string& text) {
  if (!text.empty()) return {};
  return BadValue(text, "a text that is not empty");
}

Status AnnotationPrefix(const std::string& prefix) {
  if (prefix.ends_with('/') &&
      IsDns1123Subdomain(std::string_view(prefix).substr(0, prefix.size() - 1))) {
    return {};
  }
  return BadValue(prefix, "a DNS-1123 subdomain followed by a slash, such as cdi.k8s.io/");
}

Status AtLeastZero(const Duration& value) {
  if (value >= Duration::zero()) return {};
  return BadValue(FormatDuration(value), "a duration of 0s or more");
}

Status Positive(const Duration& value) {
  if (value > Duration::zero()) return {};
  return BadValue(FormatDuration(value), "a duration of more than 0s");
}

Status PositiveOrInfinite(const std::optional<Duration>& value) {
  if (!value || *value > Duration::zero()) return {};
  return BadValue(FormatDuration(*value), "a duration of more than 0s, or infinite");
}

Status NumberPositive(const double& value) {
  if (value > 0) return {};
  return BadValue(fmt::to_string(value), "a number of more than 0");
}

Status CountPositive(const int& value) {
  if (value >= 1) return {};
  return BadValue(fmt::to_string(value), "a number of 1 or more");
}

Status CountAtLeastZero(const int& value) {
  if (value >= 0) return {};
  return BadValue(fmt::to_string(value), "a number of 0 or more");
}

Status SignalNumber(const int& value) {
  if (value >= 1 && value <= 64) return {};
  return BadValue(fmt::to_string(value), "a signal number from 1 to 64");
}

Status ImexChannels(const std::vector<int>& ids) {
  if (ids.empty() || (ids.size() == 1 && ids[0] == 0)) return {};
  return BadValue(fmt::format("{}", fmt::join(ids, ",")),
                  "no channel or channel 0 alone, the only ones supported");
}

}  // namespace ndp::config
