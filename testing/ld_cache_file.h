// An /etc/ld.so.cache made by hand, in glibc's format since 2.2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ndp {

struct LdCacheLine {
  std::string_view name;
  std::string_view path;
  std::uint32_t flags = 0x0303;  // ELF of glibc 2, x86-64
};

inline std::string LdCacheFile(const std::vector<LdCacheLine>& lines) {
  constexpr std::size_t kHeader = 48;
  constexpr std::size_t kEntry = 24;
  std::string strings;
  std::string entries;
  const auto word = [](std::uint32_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const std::size_t strings_at = kHeader + lines.size() * kEntry;
  const auto intern = [&](std::string_view text) {
    const std::size_t at = strings_at + strings.size();
    strings += std::string(text) + '\0';
    return word(static_cast<std::uint32_t>(at));
  };
  for (const LdCacheLine& line : lines) {
    entries += word(line.flags) + intern(line.name) + intern(line.path);
    entries.append(kEntry - 12, '\0');
  }
  std::string file = "glibc-ld.so.cache1.1";
  file += word(static_cast<std::uint32_t>(lines.size()));
  file += word(static_cast<std::uint32_t>(strings.size()));
  file.resize(kHeader, '\0');
  return file + entries + strings;
}

}  // namespace ndp
