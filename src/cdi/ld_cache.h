// /etc/ld.so.cache: which libraries the dynamic loader knows. Pure, any thread; the text may be
// broken or hostile.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ndp::cdi {

struct LdCacheEntry {     // views into the file
  std::string_view name;  // "libcuda.so.1"
  std::string_view path;  // "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
  bool operator==(const LdCacheEntry&) const = default;
};

// The 64-bit libraries, in the order of the file. Entries that point outside the file are left out;
// kInvalidArgument where it is no cache in the format of glibc 2.2 and newer.
Result<std::vector<LdCacheEntry>> ParseLdCache(std::span<const std::byte> file);

}  // namespace ndp::cdi
