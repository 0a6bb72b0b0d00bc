#include "inventory/mig_minors.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"

namespace ndp::inventory {
namespace {

constexpr const char* kPath = "/proc/driver/nvidia-caps/mig-minors";

bool IsPart(std::string_view part, std::string_view prefix) {
  return part.starts_with(prefix) && ParseUnsigned(part.substr(prefix.size())).has_value();
}

bool IsKnownName(std::string_view name) {
  if (name == "config" || name == "monitor") return true;
  const auto parts = Split(name, '/');
  if (parts.size() < 3 || parts.size() > 4 || parts.back() != "access") return false;
  return IsPart(parts[0], "gpu") && IsPart(parts[1], "gi") &&
         (parts.size() == 3 || IsPart(parts[2], "ci"));
}

std::optional<unsigned> Find(const MigMinors& minors, const std::string& name) {
  const auto at = minors.by_name.find(name);
  if (at == minors.by_name.end()) return std::nullopt;
  return at->second;
}

}  // namespace

std::optional<unsigned> MigMinors::GpuInstance(unsigned gpu_minor, unsigned gi) const {
  return Find(*this, fmt::format("gpu{}/gi{}/access", gpu_minor, gi));
}

std::optional<unsigned> MigMinors::ComputeInstance(unsigned gpu_minor, unsigned gi,
                                                   unsigned ci) const {
  return Find(*this, fmt::format("gpu{}/gi{}/ci{}/access", gpu_minor, gi, ci));
}

MigMinors ParseMigMinors(std::string_view text, std::vector<std::string>* bad_lines) {
  MigMinors minors;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const auto fields = Split(line, ' ');
    const auto minor = fields.size() == 2 ? ParseUnsigned(fields[1]) : std::nullopt;
    // Linux minors have 20 bits.
    if (!minor || *minor > 0xFFFFF || !IsKnownName(fields[0])) {
      if (bad_lines != nullptr)
        bad_lines->push_back(fmt::format("line {}: \"{:.80}\"", number, line));
      continue;
    }
    minors.by_name[std::string(fields[0])] = static_cast<unsigned>(*minor);
  }
  return minors;
}

Result<MigMinors> ReadMigMinors(const os::HostFs& host) {
  auto text = host.Read(kPath);
  if (!text) {
    if (text.error().code() == Code::kNotFound) return MigMinors();
    return std::move(text).error();
  }
  std::vector<std::string> bad_lines;
  MigMinors minors = ParseMigMinors(*text, &bad_lines);
  if (!bad_lines.empty()) {
    log::Warning("lines of the MIG minors file left out",
                 {{"path", kPath}, {"count", bad_lines.size()}, {"first", bad_lines[0]}});
  }
  return minors;
}

}  // namespace ndp::inventory
