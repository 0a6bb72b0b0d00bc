// NVIDIA's lists of what a container needs on Tegra: lines "type, path" in *.csv files. Pure, any
// thread; the text may be broken.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ndp::cdi {

struct CsvEntries {
  std::vector<std::string> devices;    // dev
  std::vector<std::string> folders;    // dir
  std::vector<std::string> libraries;  // lib: any file
  std::vector<std::string> links;      // sym
  bool operator==(const CsvEntries&) const = default;
};

// Appends the entries of one file. Returns the numbers of lines that are no entry: an unknown type,
// no path, the root itself. Blank lines count as none.
std::vector<int> ParseCsv(std::string_view text, CsvEntries& out);

}  // namespace ndp::cdi
