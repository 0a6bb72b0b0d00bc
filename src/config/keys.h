// The keys of the file against the keys that exist.
#pragma once

#include <string>
#include <vector>

#include "doc/value.h"

namespace ndp::config {

struct KeyFindings {
  std::vector<std::string> unknown;   // key path, line, nearest known key
  std::vector<std::string> warnings;  // spelled in another case, given twice
};

// Rewrites keys that differ from a known one only in case to that one, and removes unknown keys and
// all but the last of equal ones, so that a reader need look for exact keys only.
KeyFindings CanonicalizeKeys(doc::Value& root);

}  // namespace ndp::config
