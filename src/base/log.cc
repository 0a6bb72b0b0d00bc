#include "base/log.h"

// The one file that compiles spdlog (see fmt.cc for why).
#include <fmt/format.h>
#include <spdlog/common-inl.h>
#include <spdlog/details/backtracer-inl.h>
#include <spdlog/details/log_msg-inl.h>
#include <spdlog/details/log_msg_buffer-inl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/os-inl.h>
#include <spdlog/logger-inl.h>
#include <spdlog/pattern_formatter-inl.h>
#include <spdlog/sinks/base_sink-inl.h>
#include <spdlog/sinks/sink-inl.h>
#include <spdlog/sinks/stdout_sinks-inl.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/text.h"

namespace ndp::log {
namespace {

std::atomic<Format> g_format{Format::kText};
std::atomic<int> g_verbosity{2};

spdlog::logger& Logger() {
  // Leaked on purpose: detached workers may log while the process exits.
  static auto* logger = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto* made = new spdlog::logger("ndp", sink);
    made->set_pattern("%v");
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "";
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

// Bare where a reader can tell where the value ends, else quoted.
void AppendTextValue(std::string& out, std::string_view text) {
  if (!text.empty() && text.find_first_of(" \"=\\") == std::string_view::npos &&
      std::ranges::none_of(text, IsControl)) {
    out += text;
  } else {
    AppendJsonString(out, text);
  }
}

}  // namespace

void Init(const Options& options) {
  g_format = options.format;
  g_verbosity = options.verbosity;
}

bool Enabled(Level level) {
  switch (level) {
    case Level::kDebug:
      return g_verbosity >= 4;
    case Level::kInfo:
      return g_verbosity >= 1;
    default:
      return true;
  }
}

void Write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  if (!Enabled(level)) return;
  const std::string line = FormatLine(g_format, level, SystemClock().Wall(), message, fields);
  Logger().log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

std::string FormatLine(Format format, Level level, WallTime time, std::string_view message,
                       std::initializer_list<Field> fields) {
  std::string out;
  if (format == Format::kJson) {
    out = fmt::format(R"({{"ts":"{}","level":"{}","msg":)", FormatWallTime(time), LevelName(level));
    AppendJsonString(out, message);
    for (const Field& field : fields) {
      if (field.value.empty()) continue;
      out += ',';
      AppendJsonString(out, field.key);
      out += ':';
      if (field.is_json) {
        out += field.value;
      } else {
        AppendJsonString(out, field.value);
      }
    }
    return out += '}';
  }
  const char letter = static_cast<char>(LevelName(level)[0] - 'a' + 'A');
  out = fmt::format("{} {} ", FormatWallTime(time), letter);
  // A message is one line, whatever a foreign error text holds, and nothing that a terminal obeys.
  for (const char c : message) out += IsControl(c) ? ' ' : c;
  for (const Field& field : fields) {
    if (field.value.empty()) continue;
    out += fmt::format(" {}=", field.key);
    AppendTextValue(out, field.value);
  }
  return out;
}

bool RateLimit::Allow(const std::string& cause, std::uint64_t* dropped) {
  const MonoTime now = clock_.Now();
  auto [at, fresh] = causes_.try_emplace(cause, State{.start = now});
  State& state = at->second;
  if (!fresh && now - state.start >= window_) {
    state.start = now;
    state.used = 0;
  }
  if (state.used >= per_window_) {
    ++state.dropped;
    return false;
  }
  ++state.used;
  if (dropped != nullptr) *dropped = state.dropped;
  state.dropped = 0;
  return true;
}

}  // namespace ndp::log
