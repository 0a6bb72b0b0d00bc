#include "node/standing_warnings.h"

#include <fmt/format.h>

#include <utility>

namespace ndp::node {

// So many texts of one cause are counted apart. Not all texts there can be: others' file names are
// in them, so there is no end to those.
constexpr std::size_t kCounters = 64;

bool StandingWarnings::Allow(const std::string& warning) {
  return limit_.Allow(
      fmt::format("{} {}", cause_, std::hash<std::string_view>()(warning) % kCounters));
}

void StandingWarnings::Tell(const std::vector<std::string>& now) {
  std::set<std::string, std::less<>> told;
  for (const std::string& warning : now) {
    const bool known = told_.contains(warning) || told.contains(warning);
    if (!known && !Allow(warning)) continue;
    if (!known) log::Warning(warning);
    told.insert(warning);
  }
  told_ = std::move(told);
}

}  // namespace ndp::node
