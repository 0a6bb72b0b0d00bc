#include "cmd/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/command.h"

namespace ndp::cmd {
namespace {
using testing::ElementsAre;

Parsed Parse(const std::vector<std::string>& args) {
  return ParseCommandLine(config::Program::kDevicePlugin, "ndp device-plugin", args);
}

TEST(CommandLineTest, TakesBothFormsOfBooleans) {
  EXPECT_THAT(Parse({"--pass-device-specs"}).given.at("pass-device-specs"), ElementsAre("true"));
  EXPECT_THAT(Parse({"--pass-device-specs=false"}).given.at("pass-device-specs"),
              ElementsAre("false"));
}

TEST(CommandLineTest, ListsMayBeRepeated) {
  const Parsed parsed =
      Parse({"--device-list-strategy", "envvar", "--device-list-strategy=cdi-cri"});
  EXPECT_FALSE(parsed.exit);
  EXPECT_THAT(parsed.given.at("device-list-strategy"), ElementsAre("envvar", "cdi-cri"));
}

TEST(CommandLineTest, AnAliasIsTheSameOption) {
  EXPECT_THAT(Parse({"--nvidia-driver-root=/x"}).given.at("driver-root"), ElementsAre("/x"));
}

TEST(CommandLineTest, AnEmptyTextCounts) {
  EXPECT_THAT(Parse({"--kubelet-socket="}).given.at("kubelet-socket"), ElementsAre(""));
}

TEST(CommandLineTest, UnknownOptionsAreRefusedWithTheNearest) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Parse({"--mig-stategy=none"}).exit, kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("unknown option --mig-stategy: did you mean --mig-strategy?"));
}

TEST(CommandLineTest, ArgumentsThatAreNoOptionsAreRefused) {
  EXPECT_EQ(Parse({"--v", "3", "rubbish"}).exit, kUsage);
}

}  // namespace
}  // namespace ndp::cmd
