// The log: one structured line per thing that happened. Thread-safe after Init.
//
//   log::Info("registered", {{"resource", name}, {"ms", ms}});
//
// Text:  2026-11-29T23:28:01.250Z I registered resource=nvidia.com/gpu ms=4
// JSON:  {"ts":"…","level":"info","msg":"registered","resource":"nvidia.com/gpu","ms":4}
// Log or return an error, never both.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace ndp::log {

enum class Level { kDebug, kInfo, kWarning, kError };
enum class Format { kText, kJson };

struct Field {
  Field(std::string_view name, std::string text) : key(name), value(std::move(text)) {}
  template <std::integral T>
  Field(std::string_view name, T number)
      : key(name), value(std::to_string(number)), is_json(true) {}
  // JSON in a log that is JSON, a text in any other.
  static Field Json(std::string_view name, std::string json) {
    Field field(name, std::move(json));
    field.is_json = true;
    return field;
  }

  std::string_view key;
  std::string value;     // empty: the field is left out
  bool is_json = false;  // needs no quotes in JSON
};

struct Options {
  Format format = Format::kText;
  // As upstream's --v: 0 warnings and errors, 1-3 info too, 4 and more debug too.
  int verbosity = 2;
};

// Before the first thread; again on a reload.
void Init(const Options& options);

bool Enabled(Level level);
void Write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

inline void Debug(std::string_view message, std::initializer_list<Field> fields = {}) {
  Write(Level::kDebug, message, fields);
}
inline void Info(std::string_view message, std::initializer_list<Field> fields = {}) {
  Write(Level::kInfo, message, fields);
}
inline void Warning(std::string_view message, std::initializer_list<Field> fields = {}) {
  Write(Level::kWarning, message, fields);
}
inline void Error(std::string_view message, std::initializer_list<Field> fields = {}) {
  Write(Level::kError, message, fields);
}

// The line that Write would print, without the newline. Pure.
std::string FormatLine(Format format, Level level, WallTime time, std::string_view message,
                       std::initializer_list<Field> fields);

// At most `per_window` lines per cause in a window; the first line of the next window can say how
// many were dropped. One thread.
class RateLimit {
 public:
  explicit RateLimit(const Clock& clock, int per_window = 10,
                     Duration window = std::chrono::minutes(1))
      : clock_(clock), per_window_(per_window), window_(window) {}

  // Whether to log now. `dropped`, where given, gets the number of lines suppressed since the last
  // one that was allowed.
  bool Allow(const std::string& cause, std::uint64_t* dropped = nullptr);

 private:
  struct State {
    MonoTime start;
    int used = 0;
    std::uint64_t dropped = 0;
  };
  const Clock& clock_;
  int per_window_;
  Duration window_;
  std::map<std::string, State> causes_;
};

}  // namespace ndp::log
