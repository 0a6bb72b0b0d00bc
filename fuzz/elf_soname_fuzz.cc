// A library under the driver root may be any bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "cdi/elf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto soname = ndp::cdi::ReadSoname(std::as_bytes(std::span(data, size)));
  if (soname.ok() && *soname) NDP_CHECK((*soname)->size() <= 255);
  return 0;
}
