// Absolute paths as text, independent of any file system. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"

namespace ndp::cdi {

// `path` below `root`, cleaned: JoinPath("/run/nvidia/driver", "/usr/bin") and so on.
std::string JoinPath(std::string_view root, std::string_view path);

// "/a/b" of "/a/b/c"; "/" of "/c".
std::string_view ParentPath(std::string_view path);
std::string_view BaseName(std::string_view path);

// Where the link at `link` points that reads `target`.
std::string TargetPath(std::string_view link, std::string_view target);

// Where it is not there yet. For lists of paths and links, whose order counts.
void AppendOnce(std::vector<std::string>& to, std::string text);

// A text that may stand in a specification: UTF-8 without control characters. File names can be
// any bytes, and JSON cannot carry those.
bool IsPrintablePath(std::string_view path);

}  // namespace ndp::cdi
