#include "sim_kubelet/registrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_kubelet/test_names.h"
#include "testing/result_matchers.h"

namespace ndp::sim_kubelet {
namespace {

using testing::HasSubstr;

Status Register(Registrations& registrations, ClientId client, const std::string& path) {
  registrations.Begin(client, kGpu, path);
  Status status = registrations.Connected(client, {.preferred = true});
  if (!status.ok()) registrations.Failed(client);
  return status;
}

TEST(RegistrationsTest, TheEndOfTheOnlyStreamMakesDevicesUnhealthy) {
  for (const Like like : {Like::k134, Like::k137}) {
    Registrations registrations(like);
    ASSERT_THAT(Register(registrations, 1, "a"), IsOk());
    EXPECT_TRUE(registrations.Find(kGpu)->options.preferred);
    const auto ended = registrations.StreamEnded(1, kNow);
    EXPECT_EQ(ended.close, 1);
    EXPECT_TRUE(ended.devices_unhealthy);
    EXPECT_EQ(registrations.Find(kGpu)->stopped, kNow);
  }
}

TEST(RegistrationsTest, Upto136TheEndOfTheOlderClosesTheNewer) {
  Registrations registrations(Like::k134);
  ASSERT_THAT(Register(registrations, 1, "a"), IsOk());
  ASSERT_THAT(Register(registrations, 2, "b"), IsOk());
  EXPECT_EQ(registrations.Find(kGpu)->client, 2);
  const auto ended = registrations.StreamEnded(1, kNow);
  EXPECT_EQ(ended.close, 2);
  EXPECT_TRUE(ended.devices_unhealthy);
  EXPECT_FALSE(registrations.StreamEnded(2, kNow).close) << "its end finds nobody";
}

TEST(RegistrationsTest, Upto136AFailedDialHidesTheEndOfTheLivingClient) {
  Registrations registrations(Like::k134);
  ASSERT_THAT(Register(registrations, 1, "a"), IsOk());
  registrations.Begin(2, kGpu, "b");
  registrations.Failed(2);
  EXPECT_FALSE(registrations.StreamEnded(1, kNow).devices_unhealthy);
  EXPECT_FALSE(registrations.Find(kGpu)->stopped);
}

TEST(RegistrationsTest, On137BothLiveAndTheOlderIsPromoted) {
  Registrations registrations(Like::k137);
  ASSERT_THAT(Register(registrations, 1, "a"), IsOk());
  ASSERT_THAT(Register(registrations, 2, "b"), IsOk());
  EXPECT_EQ(registrations.All(kGpu).size(), 2U);
  const auto ended = registrations.StreamEnded(2, kNow);
  EXPECT_EQ(ended.close, 2);
  EXPECT_EQ(ended.promoted, 1);
  EXPECT_FALSE(ended.devices_unhealthy);
  EXPECT_TRUE(registrations.StreamEnded(1, kNow).devices_unhealthy);
}

TEST(RegistrationsTest, On137TheEndOfTheOlderChangesNothing) {
  Registrations registrations(Like::k137);
  ASSERT_THAT(Register(registrations, 1, "a"), IsOk());
  ASSERT_THAT(Register(registrations, 2, "b"), IsOk());
  const auto ended = registrations.StreamEnded(1, kNow);
  EXPECT_FALSE(ended.promoted);
  EXPECT_FALSE(ended.devices_unhealthy);
  EXPECT_EQ(registrations.Find(kGpu)->client, 2);
}

TEST(RegistrationsTest, On137APathThatIsConnectedIsRefusedAndThenForEver) {
  Registrations registrations(Like::k137);
  ASSERT_THAT(Register(registrations, 1, "a"), IsOk());
  EXPECT_THAT(Register(registrations, 2, "a"),
              IsErrorThat(Code::kInternal, HasSubstr("already connected")));
  // The refusal made it forget client 1, so its end changes nothing ...
  EXPECT_FALSE(registrations.StreamEnded(1, kNow).devices_unhealthy);
  EXPECT_FALSE(registrations.Find(kGpu)->stopped) << "the node goes on advertising";
  // ... and the path stays taken.
  EXPECT_THAT(Register(registrations, 3, "a"), IsError(Code::kInternal));
  EXPECT_THAT(Register(registrations, 4, "b"), IsOk()) << "another path is welcome";
}

TEST(RegistrationsTest, AStoppedPathMayRegisterAgain) {
  for (const Like like : {Like::k134, Like::k137}) {
    Registrations registrations(like);
    ASSERT_THAT(Register(registrations, 1, "a"), IsOk());
    registrations.StreamEnded(1, kNow);
    EXPECT_THAT(Register(registrations, 2, "a"), IsOk());
    EXPECT_FALSE(registrations.Find(kGpu)->stopped);
    EXPECT_EQ(registrations.All(kGpu).size(), 1U);
  }
}

TEST(RegistrationsTest, TheCheckpointsResourcesAreKnownAndStopped) {
  Registrations registrations(Like::k137);
  registrations.Restore(kGpu, kNow);
  EXPECT_EQ(registrations.Find(kGpu)->stopped, kNow);
  EXPECT_EQ(registrations.Find("other"), nullptr);
  ASSERT_THAT(Register(registrations, 1, "a"), IsOk());
  EXPECT_TRUE(registrations.StreamEnded(1, kNow).devices_unhealthy);
}

TEST(RegistrationsTest, LikeIsAKubeletVersion) {
  EXPECT_THAT(ParseLike("1.34"), IsOkAnd(Like::k134));
  EXPECT_THAT(ParseLike("1.37"), IsOkAnd(Like::k137));
  EXPECT_THAT(ParseLike("2"), IsErrorThat(Code::kInvalidArgument, HasSubstr("want 1.34 or 1.37")));
}

}  // namespace
}  // namespace ndp::sim_kubelet
