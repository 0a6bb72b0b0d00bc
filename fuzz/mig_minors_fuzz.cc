// /proc/driver/nvidia-caps/mig-minors comes from the kernel module, of whatever version.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "inventory/mig_minors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> bad_lines;
  const auto minors = ndp::inventory::ParseMigMinors(text, &bad_lines);
  NDP_CHECK(minors.by_name.size() + bad_lines.size() <= size + 1);
  return 0;
}
