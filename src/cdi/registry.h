// What a container runtime on this node can resolve: all specifications in its folders, read as it
// reads them. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ndp::cdi {

struct Registry {
  // Qualified name to the file that defines it.
  std::map<std::string, std::filesystem::path> names;
  // Files that are refused whole and names that are refused because two files of one folder define
  // them, each with the reason.
  std::vector<std::string> problems;
};

// *.json and *.yaml, not below; a later folder wins over an earlier one. A folder that is missing
// is empty.
Registry ReadRegistry(const std::vector<std::filesystem::path>& folders);

}  // namespace ndp::cdi
