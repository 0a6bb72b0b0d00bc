#include "cdi/tegra_csv.h"

#include "base/text.h"
#include "cdi/paths.h"

namespace ndp::cdi {

std::vector<int> ParseCsv(std::string_view text, CsvEntries& out) {
  std::vector<int> bad_lines;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    line = Trim(line);
    if (line.empty()) continue;
    std::size_t comma = line.find(',');
    std::string_view type = Trim(line.substr(0, comma));
    std::string_view path =
        comma == std::string_view::npos ? std::string_view() : Trim(line.substr(comma + 1));
    std::vector<std::string>* list = type == "dev"   ? &out.devices
                                     : type == "dir" ? &out.folders
                                     : type == "lib" ? &out.libraries
                                     : type == "sym" ? &out.links
                                                     : nullptr;
    if (list == nullptr || path.empty() || !IsPrintablePath(path) || CleanPath(path) == "/") {
      bad_lines.push_back(number);
    } else {
      list->push_back(CleanPath(path));
    }
  }
  return bad_lines;
}

}  // namespace ndp::cdi
