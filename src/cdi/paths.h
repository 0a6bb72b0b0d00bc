// Absolute paths as text, independent of any file system. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace ndp::cdi {

// "/a//b/./c/../d" is "/a/b/d"; ".." ends at the root. Always absolute.
std::string CleanPath(std::string_view path);

// `path` below `root`, cleaned: JoinPath("/run/nvidia/driver", "/usr/bin") and so on.
std::string JoinPath(std::string_view root, std::string_view path);

// "/a/b" of "/a/b/c"; "/" of "/c".
std::string_view ParentPath(std::string_view path);
std::string_view BaseName(std::string_view path);

// Where the link at `link` points that reads `target`.
std::string TargetPath(std::string_view link, std::string_view target);

// A text that may stand in a specification: UTF-8 without control characters. File names can be
// any bytes, and JSON cannot carry those.
bool IsPrintablePath(std::string_view path);

}  // namespace ndp::cdi
