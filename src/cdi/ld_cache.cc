#include "cdi/ld_cache.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace ndp::cdi {
namespace {

// glibc, sysdeps/generic/dl-cache.h: an optional block in the oldest format, then ours.
constexpr std::string_view kOldMagic("ld.so-1.7.0\0", 12);
constexpr std::size_t kOldHeader = 16;
constexpr std::size_t kOldEntry = 12;
constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kHeader = 48;
constexpr std::size_t kEntry = 24;

// No path is longer (PATH_MAX): bounds the time a hostile file can cost.
constexpr std::size_t kMaxString = 4096;

constexpr std::uint32_t kElfFlag = 0x01;
constexpr std::uint32_t kArchMask = 0xff00;
constexpr std::uint32_t kX8664 = 0x0300;
constexpr std::uint32_t kPpc64le = 0x0500;
constexpr std::uint32_t kAarch64 = 0x0a00;

// The caller has checked that four bytes are there.
std::uint32_t Word(std::span<const std::byte> file, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, file.data() + at, sizeof(word));
  return word;
}

bool StartsWith(std::span<const std::byte> file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

std::optional<std::string_view> StringAt(std::span<const std::byte> file, std::size_t at) {
  if (at >= file.size()) return std::nullopt;
  std::string_view text(reinterpret_cast<const char*>(file.data()) + at,
                        std::min(file.size() - at, kMaxString));
  std::size_t end = text.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(0, end);
}

}  // namespace

Result<std::vector<LdCacheEntry>> ParseLdCache(std::span<const std::byte> file) {
  if (StartsWith(file, kOldMagic) && file.size() >= kOldHeader) {
    std::uint64_t skip = kOldHeader + std::uint64_t{Word(file, kOldMagic.size())} * kOldEntry;
    skip = (skip + 7) / 8 * 8;
    file = file.subspan(std::min<std::uint64_t>(skip, file.size()));
  }
  if (!StartsWith(file, kMagic) || file.size() < kHeader) {
    return Error(Code::kInvalidArgument, "no ld.so.cache of a known format");
  }
  std::uint64_t count = Word(file, kMagic.size());
  count = std::min<std::uint64_t>(count, (file.size() - kHeader) / kEntry);
  std::vector<LdCacheEntry> entries;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t at = kHeader + i * kEntry;
    std::uint32_t flags = Word(file, at);
    std::uint32_t arch = flags & kArchMask;
    bool wanted =
        (flags & kElfFlag) != 0 && (arch == kX8664 || arch == kAarch64 || arch == kPpc64le);
    if (!wanted) continue;
    auto name = StringAt(file, Word(file, at + 4));
    auto path = StringAt(file, Word(file, at + 8));
    if (name && path) entries.push_back({*name, *path});
  }
  return entries;
}

}  // namespace ndp::cdi
