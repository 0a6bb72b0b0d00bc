// Paths as text, and as people write them.
#pragma once

#include <string>
#include <string_view>

namespace ndp {

// "/a//b/./c/../d/" is "/a/b/d"; ".." ends at the root. Always absolute. Pure.
std::string CleanPath(std::string_view path);

// `path` from the root: a relative one is taken from the folder that the process was started in.
// Empty stays empty, absolute stays as it is.
std::string AbsoluteFrom(std::string_view path);

}  // namespace ndp
