#include "config/resource_name.h"

#include <fmt/format.h>

#include "base/text.h"

namespace ndp::config {

Result<std::string> ParseResourceName(std::string_view text) {
  constexpr std::size_t kMaxLength = 63;
  std::string_view part = text;
  if (part.starts_with(kResourcePrefix)) part.remove_prefix(kResourcePrefix.size());
  std::string name = fmt::format("{}{}", kResourcePrefix, part);
  if (name.size() > kMaxLength) {
    return Error(Code::kInvalidArgument,
                 fmt::format("resource name \"{}\" has {} characters: want at most {}", name,
                             name.size(), kMaxLength));
  }
  if (!IsDns1123Subdomain(part)) {
    return Error(Code::kInvalidArgument,
                 fmt::format("invalid resource name \"{}\": want lower case letters, digits, '-' "
                             "and '.', such as nvidia.com/gpu or gpu.dev",
                             text));
  }
  return name;
}

}  // namespace ndp::config
