// JSON to a value tree and back. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "doc/value.h"

namespace ndp::doc {

// Strict JSON. kInvalidArgument names the line; nested more than 64 deep is refused.
Result<Value> ParseJson(std::string_view text);

// One line for indent < 0, else that many blanks a level. No newline at the end. Bytes that are not
// UTF-8 become U+FFFD; NaN and infinity, which JSON lacks, become null.
std::string ToJson(const Value& value, int indent = -1);

}  // namespace ndp::doc
