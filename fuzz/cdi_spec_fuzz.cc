// `ndp cdi validate FILE` and the folder of specifications: files that anybody wrote.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "cdi/text.h"
#include "cdi/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto spec = ndp::cdi::ParseSpec({reinterpret_cast<const char*>(data), size});
  if (!spec.ok() || !ndp::cdi::Validate(*spec).ok()) return 0;
  // What is valid can be written and read again.
  auto again = ndp::cdi::ParseSpec(ndp::cdi::ToJson(*spec));
  NDP_CHECK(again.ok() && ndp::cdi::Validate(*again).ok());
  return 0;
}
