#include "sim_kubelet/command_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doc/json.h"

namespace ndp::sim_kubelet {
namespace {

std::string ErrorOf(std::string_view json) {
  const Status status = CheckCommand(doc::ParseJson(json).value());
  return status.ok() ? "" : status.error().message();
}

TEST(CommandFields, AnErrorNamesTheFieldAndWhatWouldBeRight) {
  EXPECT_EQ(ErrorOf(R"({"command":"allocate","resource":"r"})"),
            "allocate needs 'count', a number from 0 to 1000000000, as in "
            R"({"command":"allocate","resource":"…","count":1})");
  EXPECT_EQ(ErrorOf(R"({"command":"raw-allocate","resource":"r"})"),
            "raw-allocate needs 'devices', a list of texts, as in "
            R"({"command":"raw-allocate","resource":"…","devices":["…"]})");
  EXPECT_EQ(ErrorOf(R"({"command":"allocate","resource":"r","count":"two"})"),
            "allocate: 'count' must be a number from 0 to 1000000000, not \"two\"");
  EXPECT_EQ(ErrorOf(R"({"command":"allocate","resource":"r","count":-1})"),
            "allocate: 'count' must be a number from 0 to 1000000000, not -1");
  EXPECT_EQ(ErrorOf(R"({"command":"allocate","resource":"r","count":1,"numa":0})"),
            "allocate: 'numa' must be a list of numbers, not 0");
  EXPECT_EQ(ErrorOf(R"({"command":"raw-allocate","resource":"r","devices":[1]})"),
            "raw-allocate: 'devices' must be a list of texts, not [1]");
  EXPECT_EQ(ErrorOf(R"({"command":"stop","leave_socket":1})"),
            "stop: 'leave_socket' must be true or false, not 1");
  EXPECT_EQ(ErrorOf(R"({"command":"release","pod":"p","pods":"q"})"),
            "release has no field 'pods': it has pod*, keep_checkpoint (false)");
  EXPECT_EQ(ErrorOf(R"({"command":"status","pod":"p"})"), "status has no field 'pod': it has none");
  EXPECT_THAT(
      ErrorOf(R"({"command":"dance"})"),
      testing::AllOf(testing::StartsWith("no command 'dance': must be one of status, wait, "),
                     testing::Not(testing::HasSubstr("\n"))));
  for (const char* wrong : {"{}", "[]", "3", R"({"command":3})"}) {
    EXPECT_EQ(ErrorOf(wrong), R"(a command is an object such as {"command":"status"})");
  }
}

TEST(CommandFields, WhatIsRightPasses) {
  EXPECT_EQ(ErrorOf(R"({"command":"status"})"), "");
  EXPECT_EQ(ErrorOf(R"({"command":"allocate","resource":"r","count":0,"pod":"p","container":"c",)"
                    R"("init":true,"numa":[0,1]})"),
            "");
  EXPECT_EQ(ErrorOf(R"({"command":"raw-allocate","resource":"r","devices":[]})"), "");
}

TEST(CommandFields, TheHelpHasACommandThatWorks) {
  const std::string help = CommandHelp();
  const std::size_t begin = help.find('{');
  EXPECT_EQ(ErrorOf(help.substr(begin, help.find('\n', begin) - begin)), "");
}

}  // namespace
}  // namespace ndp::sim_kubelet
