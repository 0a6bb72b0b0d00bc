// Foreign text in messages. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace ndp {

// For a message: control characters (and what a terminal would act on) as escapes, and of a very
// long text only its beginning and its end, which tell what is wrong and what would be right.
std::string OneLine(std::string_view text);

}  // namespace ndp
