// YAML to a value tree and back. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "doc/value.h"

namespace ndp::doc {

// One document; an empty text is null. JSON is YAML, and is read as such, with its lines.
//
// Plain scalars mean what they mean to Kubernetes' tools: yes, no, on and off are booleans. Merge
// keys (`<<`) and aliases are resolved. kInvalidArgument names the line; a text that is nested
// more than 64 deep or expands to more than 50,000 values is refused.
Result<Value> ParseYaml(std::string_view text);

// Block style. Texts that a reader would take for something else are quoted.
std::string ToYaml(const Value& value);

// What a plain (unquoted) scalar means. Also how loosely typed text, such as a variable's, is read.
Value ResolvePlainScalar(std::string_view text);

}  // namespace ndp::doc
