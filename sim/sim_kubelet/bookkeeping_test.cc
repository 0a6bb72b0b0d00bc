#include "sim_kubelet/bookkeeping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_kubelet/test_names.h"
#include "testing/result_matchers.h"

namespace ndp::sim_kubelet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class BookkeepingTest : public testing::Test {
 protected:
  void SetUp() override {
    book_.registrations().Begin(1, kGpu, "a");
    ASSERT_THAT(book_.registrations().Connected(1, {.preferred = true}), IsOk());
    SetDevices({{"g0", true, {0}}, {"g1", true, {0}}, {"g2", true, {1}}, {"g3", true, {1}}});
  }
  void SetDevices(std::vector<Device> devices) { book_.Replace(kGpu, std::move(devices)); }
  Quantity Gpus(MonoTime now = kNow) { return book_.Report(now)[kGpu]; }
  static ContainerRequest Request(const std::string& pod, int count) {
    return {
        .pod = pod, .container = "c", .resource = kGpu, .count = count, .init = false, .numa = {}};
  }
  // Admits, with the plugin preferring nothing.
  std::set<std::string> Admit(const ContainerRequest& request) {
    auto choice = book_.Begin(request);
    EXPECT_THAT(choice, IsOk());
    while (choice->question) EXPECT_THAT(book_.Answer(request, {}, *choice), IsOk());
    if (!choice->already_held) {
      EXPECT_THAT(book_.Commit(request, *choice, "answer"), IsOk());
    }
    return choice->chosen;
  }

  Bookkeeping book_{{.like = Like::k137}};
};

TEST_F(BookkeepingTest, UnhealthyDevicesCountAsCapacityOnly) {
  EXPECT_EQ(Gpus(), (Quantity{4, 4}));
  SetDevices({{"g0", true, {}}, {"g1", false, {}}});
  EXPECT_EQ(Gpus(), (Quantity{2, 1}));
}

TEST_F(BookkeepingTest, AResourceWithoutPluginIsForgottenAfterItsGrace) {
  book_.registrations().StreamEnded(1, kNow);
  book_.MarkUnhealthy(kGpu);
  EXPECT_EQ(Gpus(kNow + std::chrono::minutes(5)), (Quantity{4, 0}));
  std::vector<std::string> forgotten;
  EXPECT_THAT(book_.Report(kNow + std::chrono::minutes(6), &forgotten), IsEmpty());
  EXPECT_THAT(forgotten, ElementsAre(kGpu));
  EXPECT_THAT(book_.Begin(Request("p", 1)),
              IsErrorThat(Code::kNotFound, HasSubstr("unregistered")));
}

TEST_F(BookkeepingTest, TheQuestionHasEveryFreeDevice) {
  const ContainerRequest request = Request("p", 2);
  auto choice = book_.Begin(request);
  ASSERT_THAT(choice, IsOk());
  ASSERT_TRUE(choice->question);
  EXPECT_THAT(choice->question->available, UnorderedElementsAre("g0", "g1", "g2", "g3"));
  EXPECT_THAT(choice->question->must_include, IsEmpty());
  ASSERT_THAT(book_.Answer(request, {"g3", "g1"}, *choice), IsOk());
  EXPECT_THAT(choice->chosen, ElementsAre("g1", "g3"));
}

TEST_F(BookkeepingTest, WithoutAChoiceThePluginIsNotAsked) {
  const auto choice = book_.Begin(Request("p", 4));
  ASSERT_THAT(choice, IsOk());
  EXPECT_FALSE(choice->question);
  EXPECT_EQ(choice->chosen.size(), 4U);
}

TEST_F(BookkeepingTest, PreferredIdsThatAreNotAvailableAreDropped) {
  const ContainerRequest request = Request("p", 2);
  auto choice = book_.Begin(request);
  ASSERT_THAT(book_.Answer(request, {"nonsense", "g2"}, *choice), IsOk());
  EXPECT_EQ(choice->chosen.size(), 2U);
  EXPECT_TRUE(choice->chosen.contains("g2"));
}

TEST_F(BookkeepingTest, DevicesInUseAreNotHandedOutTwice) {
  const auto first = Admit(Request("p", 3));
  const auto second = Admit(Request("q", 1));
  EXPECT_FALSE(first.contains(*second.begin()));
  EXPECT_THAT(book_.Begin(Request("r", 1)),
              IsErrorThat(Code::kUnavailable, HasSubstr("Requested: 1, Available: 0")));
  book_.Release("p");
  EXPECT_EQ(Admit(Request("r", 3)), first);
}

TEST_F(BookkeepingTest, AContainerThatRestartsKeepsItsDevicesIfHealthy) {
  const auto held = Admit(Request("p", 1));
  const auto again = book_.Begin(Request("p", 1));
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->already_held);
  EXPECT_EQ(again->chosen, held);
  SetDevices({{*held.begin(), false, {}}});
  EXPECT_THAT(book_.Begin(Request("p", 1)),
              IsErrorThat(Code::kUnavailable, HasSubstr("no longer healthy")));
}

TEST_F(BookkeepingTest, InitContainersDevicesPassOnWithoutANewChoice) {
  ContainerRequest init = Request("p", 1);
  init.container = "init";
  init.init = true;
  const auto held = Admit(init);
  EXPECT_EQ(Admit(Request("p", 1)), held);

  ContainerRequest more = Request("q", 1);
  more.container = "init";
  more.init = true;
  const auto first = Admit(more);
  const auto choice = book_.Begin(Request("q", 2));
  ASSERT_TRUE(choice->question);
  EXPECT_THAT(choice->question->must_include, ElementsAre(*first.begin()));
}

TEST_F(BookkeepingTest, ATopologyChoiceAsksForAlignedDevicesThenForTheRest) {
  ContainerRequest request = Request("p", 1);
  request.numa = {1};
  auto choice = book_.Begin(request);
  ASSERT_TRUE(choice->question);
  EXPECT_THAT(choice->question->available, UnorderedElementsAre("g2", "g3"));
  book_.Abandon(*choice, kGpu);

  request.count = 3;  // both aligned ones are sure, one more of the others
  choice = book_.Begin(request);
  ASSERT_TRUE(choice->question);
  EXPECT_THAT(choice->question->must_include, UnorderedElementsAre("g2", "g3"));
  EXPECT_EQ(choice->question->available.size(), 4U);
}

TEST_F(BookkeepingTest, AnIdThatLeavesDuringAllocateCrashesTheRealKubelet) {
  const ContainerRequest request = Request("p", 4);
  const auto choice = book_.Begin(request);
  SetDevices({{"g0", true, {}}});
  EXPECT_THAT(book_.Commit(request, *choice, ""),
              IsErrorThat(Code::kInternal, HasSubstr("left the list")));
}

TEST_F(BookkeepingTest, TheCheckpointBringsHoldingsAndNamesBack) {
  const auto held = Admit(Request("p", 1));
  const auto parsed = ParseCheckpoint(FormatCheckpoint(book_.ToCheckpoint()));
  ASSERT_THAT(parsed, IsOk());
  Bookkeeping next{{.like = Like::k134}};
  next.Restore(*parsed, kNow);
  EXPECT_EQ(next.Report(kNow)[kGpu], Quantity{}) << "known, and nothing healthy yet";
  ASSERT_EQ(next.holdings().size(), 1U);
  EXPECT_EQ(next.holdings()[0].Ids(), held);
  EXPECT_EQ(next.holdings()[0].response, "answer");
  next.Replace(kGpu, {{"other", true, {}}});
  EXPECT_EQ(next.HeldButUnlisted(), *held.begin());
}

TEST(CheckpointTest, HasTheKubeletsLayout) {
  const Checkpoint checkpoint{.holdings = {{.pod = "p",
                                            .container = "c",
                                            .resource = kGpu,
                                            .devices = {{-1, {"g0"}}, {1, {"g1"}}},
                                            .response = "ab"}},
                              .registered = {{kGpu, {"g0"}}}};
  EXPECT_THAT(
      FormatCheckpoint(checkpoint),
      testing::StartsWith(
          R"({"Data":{"PodDeviceEntries":[{"PodUID":"p","ContainerName":"c",)"
          R"("ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["g0"],"1":["g1"]},)"
          R"("AllocResp":"YWI="}],"RegisteredDevices":{"nvidia.com/gpu":["g0"]}},"Checksum":)"));
  EXPECT_THAT(ParseCheckpoint("{}"), IsError(Code::kInvalidArgument));
}

}  // namespace
}  // namespace ndp::sim_kubelet
