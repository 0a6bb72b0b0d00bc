// What a value of the right form must still be. For the option table only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace ndp::config {

Status AbsolutePath(const std::string& path);  // empty passes
Status NonEmpty(const std::string& text);
Status AnnotationPrefix(const std::string& prefix);  // a DNS-1123 subdomain and its slash
Status AtLeastZero(const Duration& value);
Status Positive(const Duration& value);
Status PositiveOrInfinite(const std::optional<Duration>& value);
Status NumberPositive(const double& value);
Status CountPositive(const int& value);
Status CountAtLeastZero(const int& value);
Status SignalNumber(const int& value);
Status ImexChannels(const std::vector<int>& ids);  // [] or [0]

}  // namespace ndp::config
