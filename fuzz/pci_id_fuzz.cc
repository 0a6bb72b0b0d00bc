// PCI addresses come from the driver, from sysfs and from configuration files.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto id = ndp::NormalizePciBusId(text);
  // What is normal stays so.
  if (id) NDP_CHECK(ndp::NormalizePciBusId(*id) == id);
  return 0;
}
