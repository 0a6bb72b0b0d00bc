// Names of extended resources: nvidia.com/gpu. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ndp::config {

inline constexpr std::string_view kResourcePrefix = "nvidia.com/";

// Adds the prefix where it is missing. kInvalidArgument unless the part behind the slash is a
// DNS-1123 subdomain and the whole has at most 63 characters.
Result<std::string> ParseResourceName(std::string_view text);

}  // namespace ndp::config
