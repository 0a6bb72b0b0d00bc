#include "node/standing_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ndp::node {
namespace {

using testing::HasSubstr;

class StandingWarningsTest : public testing::Test {
 protected:
  // How many lines were written.
  long Tell(const std::vector<std::string>& now) {
    testing::internal::CaptureStderr();
    warnings_.Tell(now);
    last_ = testing::internal::GetCapturedStderr();
    return std::ranges::count(last_, '\n');
  }

  ManualClock clock_;
  log::RateLimit limit_{clock_};
  StandingWarnings warnings_{limit_, "test"};
  std::string last_;
};

TEST_F(StandingWarningsTest, OneIsToldWhenItBeginsAndWhenItBeginsAgain) {
  EXPECT_EQ(Tell({"no socket", "no link", "no socket"}), 2);
  EXPECT_THAT(last_, HasSubstr("W no socket\n"));
  EXPECT_TRUE(warnings_.told("no link"));
  EXPECT_EQ(Tell({"no link", "no socket"}), 0);
  EXPECT_EQ(Tell({"no socket"}), 0);
  EXPECT_FALSE(warnings_.told("no link"));
  EXPECT_EQ(Tell({"no link"}), 1);
}

TEST_F(StandingWarningsTest, OneThatComesAndGoesIsNoFloodAndIsToldLaterWhereItStays) {
  long lines = 0;
  for (int i = 0; i < 1000; ++i) {
    lines += Tell({});
    lines += Tell({"a file has gone"});
  }
  EXPECT_EQ(lines, 10);
  EXPECT_FALSE(warnings_.told("a file has gone"));
  EXPECT_EQ(Tell({"another file has gone"}), 1) << "others are not kept back by it";
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(Tell({"a file has gone"}), 1);
  EXPECT_TRUE(warnings_.told("a file has gone"));
}

TEST_F(StandingWarningsTest, ManyThatBeginAtOnceAreAllTold) {
  std::vector<std::string> all;
  for (int i = 0; i < 65; ++i) all.push_back("no link for GPU " + std::to_string(i));
  EXPECT_EQ(Tell(all), 65);
}

TEST_F(StandingWarningsTest, NamesThatNeverComeAgainAreNoFloodEither) {
  long lines = 0;
  for (int i = 0; i < 10000; ++i) lines += Tell({"copy-" + std::to_string(i) + " is in the way"});
  EXPECT_LE(lines, 640);
}

}  // namespace
}  // namespace ndp::node
