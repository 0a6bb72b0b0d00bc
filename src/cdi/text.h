// A specification as text and back. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cdi/spec.h"

namespace ndp::cdi {

// One line without a newline: byte for byte what upstream's writer makes of the same content.
std::string ToJson(const Spec& spec);

// For people: block style behind a "---" line.
std::string ToYaml(const Spec& spec);

// JSON or YAML. As strict as container runtimes are: an unknown key or a value of the wrong kind
// refuses the whole file. kInvalidArgument names the key path and the line. Not yet validated.
Result<Spec> ParseSpec(std::string_view text);

}  // namespace ndp::cdi
