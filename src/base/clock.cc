#include "base/clock.h"

#include <fmt/core.h>

#include <ctime>

namespace ndp {

MonoTime SystemClock::Now() const { return std::chrono::steady_clock::now(); }
WallTime SystemClock::Wall() const { return std::chrono::system_clock::now(); }

std::string FormatWallTime(WallTime time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since - seconds);
  const std::time_t t = seconds.count();
  std::tm tm{};
  gmtime_r(&t, &tm);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", tm.tm_year + 1900, tm.tm_mon + 1,
                     tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, millis.count());
}

}  // namespace ndp
