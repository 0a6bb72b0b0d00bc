#include "base/duration.h"

#include "testing/result_matchers.h"

namespace ndp {
namespace {
using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(ParseDurationTest, TakesGoText) {
  EXPECT_THAT(ParseDuration("30s"), IsOkAnd(Duration(30s)));
  EXPECT_THAT(ParseDuration("1m30s"), IsOkAnd(Duration(90s)));
  EXPECT_THAT(ParseDuration("1.5h"), IsOkAnd(Duration(90min)));
  EXPECT_THAT(ParseDuration("250ms"), IsOkAnd(Duration(250ms)));
  EXPECT_THAT(ParseDuration("7us"), IsOkAnd(Duration(7us)));
  EXPECT_THAT(ParseDuration("-2s"), IsOkAnd(Duration(-2s)));
  EXPECT_THAT(ParseDuration("0"), IsOkAnd(Duration(0s)));
}

TEST(ParseDurationTest, RefusesWhatGoRefuses) {
  for (const char* text : {"", "5", "s", "1x", "1s5", ".s", "--1s", "1 s", "1e9s"}) {
    EXPECT_THAT(ParseDuration(text), IsErrorThat(Code::kInvalidArgument, HasSubstr("such as 30s")))
        << text;
  }
  for (const char* text : {"1281024h", "999999999999h", "99999999999999999999999999999s"}) {
    EXPECT_THAT(ParseDuration(text),
                IsErrorThat(Code::kInvalidArgument, HasSubstr("want at most 1281023h")))
        << text;
  }
}

TEST(FormatDurationTest, IsGosShortestForm) {
  EXPECT_EQ(FormatDuration(90s), "1m30s");
  EXPECT_EQ(FormatDuration(1h), "1h0m0s");
  EXPECT_EQ(FormatDuration(250ms), "250ms");
  EXPECT_EQ(FormatDuration(1500ms), "1.5s");
  EXPECT_EQ(FormatDuration(0s), "0s");
}

}  // namespace
}  // namespace ndp
