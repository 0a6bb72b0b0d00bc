// /etc/ld.so.cache under the driver root may be any bytes; entries are views into them.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "cdi/ld_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto entries = ndp::cdi::ParseLdCache(std::as_bytes(std::span(data, size)));
  if (!entries.ok()) return 0;
  const char* begin = reinterpret_cast<const char*>(data);
  for (const ndp::cdi::LdCacheEntry& entry : *entries) {
    for (std::string_view text : {entry.name, entry.path}) {
      NDP_CHECK(text.data() >= begin && text.data() + text.size() < begin + size);
    }
  }
  return 0;
}
