// The status as one page for people: no script, no outside asset. Pure, any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "doc/value.h"

namespace ndp::web {

// The verdict on top, then the status tree: maps as rows, lists of maps as tables. What is bad
// stands out in colour and by its word.
std::string RenderPage(const doc::Value& status, const Status& ready);

}  // namespace ndp::web
