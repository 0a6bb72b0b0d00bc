// Time, injected: no room reads a clock on its own.
#pragma once

#include <chrono>
#include <string>

namespace ndp {

using Duration = std::chrono::nanoseconds;
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime Now() const = 0;   // for intervals
  virtual WallTime Wall() const = 0;  // for people and for files that outlive the process
};

class SystemClock final : public Clock {
 public:
  MonoTime Now() const override;
  WallTime Wall() const override;
};

// For tests: stands still until told. Not thread-safe.
class ManualClock final : public Clock {
 public:
  MonoTime Now() const override { return now_; }
  WallTime Wall() const override { return wall_; }
  void Advance(Duration by) {
    now_ += by;
    wall_ += by;
  }
  void SetWall(WallTime wall) { wall_ = wall; }

 private:
  MonoTime now_{std::chrono::hours(1)};
  WallTime wall_{std::chrono::hours(24 * 365 * 50)};
};

// RFC 3339 in UTC with milliseconds: 2026-11-29T23:28:01.250Z.
std::string FormatWallTime(WallTime time);

}  // namespace ndp
