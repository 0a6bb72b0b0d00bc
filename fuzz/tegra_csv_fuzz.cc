// CSV files on Tegra are the vendor's, but lie in a folder that others write too.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "cdi/paths.h"
#include "cdi/tegra_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ndp::cdi::CsvEntries entries;
  ndp::cdi::ParseCsv({reinterpret_cast<const char*>(data), size}, entries);
  for (const auto& list : {entries.devices, entries.folders, entries.libraries, entries.links}) {
    for (const std::string& path : list) {
      NDP_CHECK(path == ndp::CleanPath(path) && ndp::cdi::IsPrintablePath(path));
    }
  }
  return 0;
}
