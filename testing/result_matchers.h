// gMock matchers for Result: a test names the error it expects.
//
//   EXPECT_THAT(ParsePort("80"), IsOkAnd(80));
//   EXPECT_THAT(ParsePort("x"), IsErrorThat(Code::kInvalidArgument, HasSubstr("a number")));
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"

namespace ndp {

template <typename T>
void PrintTo(const Result<T>& result, std::ostream* out) {
  if (!result.ok()) {
    *out << result.error();
  } else if constexpr (std::is_void_v<T>) {
    *out << "ok";
  } else {
    *out << "ok: " << testing::PrintToString(*result);
  }
}

MATCHER(IsOk, "is ok") { return arg.ok(); }

MATCHER_P(IsOkAnd, inner, "is ok and holds the value") {
  return arg.ok() && testing::ExplainMatchResult(inner, *arg, result_listener);
}

MATCHER_P(IsError, code, "is an error with the code") {
  return !arg.ok() && arg.error().code() == code;
}

MATCHER_P2(IsErrorThat, code, message, "is an error with the code and a message that matches") {
  return !arg.ok() && arg.error().code() == code &&
         testing::ExplainMatchResult(message, arg.error().message(), result_listener);
}

}  // namespace ndp
