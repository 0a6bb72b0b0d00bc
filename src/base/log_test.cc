#include "base/log.h"

#include <gtest/gtest.h>

namespace ndp::log {
namespace {
using namespace std::chrono_literals;

constexpr WallTime kTime{std::chrono::seconds(1'000'000'000)};

TEST(LogLineTest, TextQuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(FormatLine(Format::kText, Level::kWarning, kTime, "socket gone",
                       {{"path", "/a/b.sock"}, {"why", "no such file"}, {"empty", ""}}),
            "2001-09-09T01:46:40.000Z W socket gone path=/a/b.sock why=\"no such file\"");
}

TEST(LogLineTest, IsOneLineWhateverTheTextHolds) {
  EXPECT_EQ(FormatLine(Format::kText, Level::kInfo, kTime, "a\nb", {{"k", "c\nd"}}),
            "2001-09-09T01:46:40.000Z I a b k=\"c\\nd\"");
}

TEST(LogLineTest, Json) {
  EXPECT_EQ(FormatLine(Format::kJson, Level::kError, kTime, "say \"x\"", {{"k", "v"}}),
            R"({"ts":"2001-09-09T01:46:40.000Z","level":"error","msg":"say \"x\"","k":"v"})");
}

TEST(LogLineTest, NumbersAndJsonAreThatInJsonAlone) {
  const auto line = [](Format format) {
    return FormatLine(format, Level::kInfo, kTime, "m",
                      {{"count", 4},
                       {"below", -1L},
                       {"size", std::size_t{0}},
                       {"driver", "535.54"},
                       Field::Json("settings", R"({"v":[1,"a"]})")});
  };
  EXPECT_EQ(line(Format::kJson),
            R"({"ts":"2001-09-09T01:46:40.000Z","level":"info","msg":"m","count":4,"below":-1,)"
            R"("size":0,"driver":"535.54","settings":{"v":[1,"a"]}})");
  EXPECT_EQ(line(Format::kText),
            R"(2001-09-09T01:46:40.000Z I m count=4 below=-1 size=0 driver=535.54 )"
            R"(settings="{\"v\":[1,\"a\"]}")");
}

TEST(RateLimitTest, AllowsTenAMinutePerCauseAndCountsTheRest) {
  ManualClock clock;
  RateLimit limit(clock);
  int allowed = 0;
  for (int i = 0; i < 100; ++i) allowed += limit.Allow("xid") ? 1 : 0;
  EXPECT_EQ(allowed, 10);
  EXPECT_TRUE(limit.Allow("other"));
  clock.Advance(1min);
  std::uint64_t dropped = 0;
  EXPECT_TRUE(limit.Allow("xid", &dropped));
  EXPECT_EQ(dropped, 90U);
}

}  // namespace
}  // namespace ndp::log
