#include "node/trouble_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::node {
namespace {
using testing::HasSubstr;
using testing::Not;

class TroubleLogTest : public testing::Test {
 protected:
  std::string Tell(const std::set<std::string, std::less<>>& told = {}) {
    testing::internal::CaptureStderr();
    log_.Tell({offer_}, board_, told);
    return testing::internal::GetCapturedStderr();
  }
  void List(std::string id, const std::string& reason) {
    offer_.resource.devices.push_back(
        {.id = std::move(id), .healthy = reason.empty(), .reason = reason});
  }

  TroubleLogTest() { offer_.resource.name = "nvidia.com/gpu"; }

  SystemClock clock_;
  log::RateLimit limit_{clock_};
  TroubleLog log_{limit_};
  Offer offer_;
  health::HealthBoard board_;
};

TEST_F(TroubleLogTest, OneLineForAReasonWhenItBeginsAndOneWhenItEnds) {
  List("GPU-0", "its node is missing");
  List("GPU-1", "its node is missing");
  List("GPU-2", "");
  const std::string begun = Tell();
  EXPECT_THAT(begun, HasSubstr("W devices are not handed out resource=nvidia.com/gpu count=2 "
                               "first=GPU-0 why=\"its node is missing\""));
  EXPECT_THAT(begun, Not(HasSubstr("GPU-1")));
  EXPECT_EQ(Tell(), "");
  offer_.resource.devices.clear();
  EXPECT_THAT(Tell(), HasSubstr("its node is missing"));
  EXPECT_EQ(Tell(), "");
}

TEST_F(TroubleLogTest, AVerdictOfHealthInItsPlaceIsNoEnd) {
  List("GPU-0", "lost, not yet judged");
  EXPECT_NE(Tell(), "");
  board_.devices["GPU-0"] = {.healthy = false, .reason = "lost"};
  EXPECT_EQ(Tell(), "");
  board_.devices.clear();
  offer_.resource.devices = {{.id = "GPU-0", .healthy = true, .reason = ""}};
  EXPECT_EQ(Tell(), "") << "health says that it is back";
}

TEST_F(TroubleLogTest, WhatHealthOrOthersHaveSaidIsNotSaidAgain) {
  board_.devices["GPU-0"] = {.healthy = false, .reason = "XID 79"};
  List("GPU-0::3", "XID 79");
  List("GPU-1", "no CDI entry");
  EXPECT_EQ(Tell({"no CDI entry"}), "");
}

}  // namespace
}  // namespace ndp::node
