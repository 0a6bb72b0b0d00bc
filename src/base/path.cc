#include "base/path.h"

#include <filesystem>

namespace ndp {

std::string AbsoluteFrom(std::string_view path) {
  if (path.empty() || path.starts_with('/')) return std::string(path);
  std::error_code ec;
  const std::filesystem::path here = std::filesystem::current_path(ec);
  // Its folder was removed: whoever opens the path says so.
  if (ec) return std::string(path);
  std::string absolute = (here / path).lexically_normal().string();
  if (absolute.size() > 1 && absolute.ends_with('/')) absolute.pop_back();
  return absolute;
}

}  // namespace ndp
