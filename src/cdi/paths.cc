#include "cdi/paths.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ndp::cdi {

std::string JoinPath(std::string_view root, std::string_view path) {
  std::string joined(root);
  joined += '/';
  joined += CleanPath(path);
  return CleanPath(joined);
}

std::string_view ParentPath(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash);
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string TargetPath(std::string_view link, std::string_view target) {
  if (target.starts_with('/')) return CleanPath(target);
  std::string path(ParentPath(link));
  path += '/';
  path += target;
  return CleanPath(path);
}

void AppendOnce(std::vector<std::string>& to, std::string text) {
  if (std::ranges::find(to, text) == to.end()) to.push_back(std::move(text));
}

bool IsPrintablePath(std::string_view path) {
  std::size_t more = 0;  // continuation bytes still to come
  for (char c : path) {
    auto byte = static_cast<unsigned char>(c);
    if (more > 0) {
      if ((byte & 0xc0) != 0x80) return false;
      --more;
    } else if (IsControl(c)) {
      return false;
    } else if (byte >= 0x80) {
      // Lead bytes of two, three and four; overlong and surrogate forms are not told apart, since a
      // reader replaces those and no file of a driver is named so.
      if (byte >= 0xc2 && byte <= 0xdf) {
        more = 1;
      } else if (byte >= 0xe0 && byte <= 0xef) {
        more = 2;
      } else if (byte >= 0xf0 && byte <= 0xf4) {
        more = 3;
      } else {
        return false;
      }
    }
  }
  return more == 0;
}

}  // namespace ndp::cdi
