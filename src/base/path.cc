#include "base/path.h"

#include <filesystem>
#include <vector>

#include "base/text.h"

namespace ndp {

std::string CleanPath(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::string_view part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  std::string clean;
  for (std::string_view part : parts) {
    clean += '/';
    clean += part;
  }
  return clean.empty() ? "/" : clean;
}

std::string AbsoluteFrom(std::string_view path) {
  if (path.empty() || path.starts_with('/')) return std::string(path);
  std::error_code ec;
  const std::filesystem::path here = std::filesystem::current_path(ec);
  // Its folder was removed: whoever opens the path says so.
  if (ec) return std::string(path);
  return CleanPath((here / path).string());
}

}  // namespace ndp
