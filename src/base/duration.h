// Go's duration text, the form of every duration in flags and configuration ("90s", "1m30s",
// "1.5h", "250ms", "0").
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace ndp {

// Units ns, us, µs, ms, s, m, h. kInvalidArgument names the text and says what would be right.
Result<Duration> ParseDuration(std::string_view text);

// Go's shortest form: 1m30s, 250ms, 0s.
std::string FormatDuration(Duration duration);

}  // namespace ndp
