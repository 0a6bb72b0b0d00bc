// What follows from settings together: values derived from others, and contradictions. For Load.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/load.h"

namespace ndp::config {

Status Resolve(Loaded& loaded);

// The folder that holds /dev, of an absolute path to it or to that /dev itself: people give both.
std::string DevRootOf(std::string_view path);

}  // namespace ndp::config
