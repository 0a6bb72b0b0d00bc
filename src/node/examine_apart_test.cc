#include "node/examine_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::node {
namespace {
using namespace std::chrono_literals;
using ::testing::HasSubstr;

health::Examination Shell(const std::string& script, Duration limit = 20s) {
  static const SystemClock clock;
  return ExamineBy({"/bin/sh", "-c", script}, clock, limit);
}

TEST(ExamineByTest, ReadsWhatTheOtherProcessSaw) {
  const auto seen = Shell(R"(echo '{"uuid":"GPU-a","recoveryAction":1}')");
  EXPECT_FALSE(seen.failure);
  EXPECT_EQ(seen.uuid, "GPU-a");
  EXPECT_EQ(seen.sample.recovery_action, 1);
}

TEST(ExamineByTest, EveryMishapIsAFailureOfTheLook) {
  for (const char* script : {"exit 1", "echo nonsense", "echo '{}'", "kill -9 $$"}) {
    EXPECT_TRUE(Shell(script).failure) << script;
  }
  static const SystemClock clock;
  EXPECT_TRUE(ExamineBy({"/nonexistent/program"}, clock, 20s).failure);
}

TEST(ExamineByTest, OneThatDoesNotAnswerIsKilled) {
  const auto seen = Shell("exec sleep 600", 50ms);
  ASSERT_TRUE(seen.failure);
  EXPECT_THAT(seen.failure->Message(), HasSubstr("no answer in time"));
}

}  // namespace
}  // namespace ndp::node
