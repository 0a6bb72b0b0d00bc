#include "plugin/held_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/result_matchers.h"

namespace ndp::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

// As kubelets 1.20 to 1.37 write it (1.37 adds BootID outside Data); AllocResp shortened.
constexpr std::string_view kCheckpoint =
    R"({"Data":{"PodDeviceEntries":[)"
    R"({"PodUID":"1f0e","ContainerName":"a","ResourceName":"nvidia.com/gpu",)"
    R"("DeviceIDs":{"0":["GPU-b"],"1":["GPU-a"]},"AllocResp":"CgkKA0ZPTxICYmE="},)"
    R"({"PodUID":"1f0e","ContainerName":"b","ResourceName":"nvidia.com/gpu.shared",)"
    R"("DeviceIDs":{"-1":["GPU-c::3"]},"AllocResp":""}],)"
    R"("RegisteredDevices":{"nvidia.com/gpu":["GPU-a","GPU-b","GPU-d"]}},)"
    R"("Checksum":3712961436,"BootID":"5e0b8c1e"})";

TEST(ParseCheckpointTest, ReadsIdsByNumaNode) {
  const auto held = ParseCheckpoint(kCheckpoint);
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(held->Resources(), ElementsAre("nvidia.com/gpu", "nvidia.com/gpu.shared"));
  EXPECT_THAT(held->Ids("nvidia.com/gpu"), ElementsAre("GPU-a", "GPU-b"));
  EXPECT_TRUE(held->Holds("nvidia.com/gpu.shared", "GPU-c::3"));
  EXPECT_FALSE(held->Holds("nvidia.com/gpu", "GPU-d")) << "registered is not held";
  EXPECT_TRUE(held->HoldsAny("nvidia.com/gpu"));
  EXPECT_FALSE(held->HoldsAny("nvidia.com/mig-1g.10gb"));
}

TEST(ParseCheckpointTest, ReadsThePlainListOfOldKubelets) {
  const auto held = ParseCheckpoint(
      R"({"Data":{"PodDeviceEntries":[{"ResourceName":"nvidia.com/gpu","DeviceIDs":["GPU-a"]}]}})");
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(held->Ids("nvidia.com/gpu"), ElementsAre("GPU-a"));
}

TEST(ParseCheckpointTest, NoPodIsNoTrouble) {
  const auto held =
      ParseCheckpoint(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1})");
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(held->Resources(), IsEmpty());
}

TEST(ParseCheckpointTest, SaysWhatIsWrongWithTheFile) {
  EXPECT_THAT(ParseCheckpoint(""), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ParseCheckpoint("{\"Data\":{\"PodDev"), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ParseCheckpoint("[]"), IsErrorThat(Code::kInvalidArgument, HasSubstr("'Data'")));
  EXPECT_THAT(ParseCheckpoint(R"({"Data":{"PodDeviceEntries":5}})"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("should be a list")));
  EXPECT_THAT(ParseCheckpoint("{\"Data\":{\"PodDeviceEntries\":[\n{\"DeviceIDs\":{}}]}}"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("ResourceName")));
}

TEST(HeldDevicesTest, AReplicaHoldsItsGpuUnderItsResource) {
  HeldDevices held;
  held.Add("nvidia.com/gpu.shared", "GPU-a::3");
  held.Add("nvidia.com/gpu", "GPU-b");
  EXPECT_THAT(held.ResourcesHolding("GPU-a"), ElementsAre("nvidia.com/gpu.shared"));
  EXPECT_THAT(held.ResourcesHolding("GPU-b"), ElementsAre("nvidia.com/gpu"));
  EXPECT_THAT(held.ResourcesHolding("GPU-"), IsEmpty());
}

class StayingIdsTest : public ::testing::Test {
 protected:
  static Resource List(std::vector<ListedDevice> devices) {
    return {.name = "nvidia.com/gpu", .devices = std::move(devices)};
  }
  Leaving Staying(const std::set<std::string_view>& offered) {
    return StayingIds(&shown_, offered, held_, "nvidia.com/gpu", unhealthy_, clock_.Now());
  }
  static auto Ids(const char* id) { return Field(&ListedDevice::id, id); }

  ManualClock clock_;
  HeldDevices held_;
  UnhealthyAtKubelet unhealthy_;
  ResourceView shown_{List({{.id = "GPU-a", .numa_node = 1}, {.id = "GPU-b"}})};
  ResourceView sick_{List({{.id = "GPU-a", .healthy = false}, {.id = "GPU-b"}})};
};

TEST_F(StayingIdsTest, WhatIsOfferedIsNobodysConcern) {
  EXPECT_THAT(Staying({"GPU-a", "GPU-b", "GPU-c"}).stay, IsEmpty());
}

// Its Allocate may be under way: dropping it crashes the kubelet.
TEST_F(StayingIdsTest, AnIdStaysUntilTheKubeletHasHadItUnhealthyForTenSeconds) {
  Leaving leaving = Staying({"GPU-b"});
  ASSERT_EQ(leaving.stay.size(), 1U);
  EXPECT_EQ(leaving.stay[0].id, "GPU-a");
  EXPECT_FALSE(leaving.stay[0].healthy);
  EXPECT_EQ(leaving.stay[0].numa_node, 1);
  EXPECT_FALSE(leaving.look_again) << "the time runs from the list on the wire";

  unhealthy_.OnSent(sick_, clock_.Now());
  const MonoTime sent = clock_.Now();
  clock_.Advance(9s);
  unhealthy_.OnSent(sick_, clock_.Now());  // a second list does not start the time anew
  leaving = Staying({"GPU-b"});
  EXPECT_THAT(leaving.stay, ElementsAre(Ids("GPU-a")));
  EXPECT_EQ(leaving.look_again, sent + kUnhealthyBeforeLeaving);
  clock_.Advance(1s);
  EXPECT_THAT(Staying({"GPU-b"}).stay, IsEmpty());
}

TEST_F(StayingIdsTest, AnIdThatWasHealthyInBetweenWaitsAgain) {
  unhealthy_.OnSent(sick_, clock_.Now());
  clock_.Advance(20s);
  unhealthy_.OnSent(shown_, clock_.Now());
  EXPECT_FALSE(unhealthy_.Since("GPU-a"));
  EXPECT_THAT(Staying({"GPU-b"}).stay, ElementsAre(Ids("GPU-a")));
}

TEST_F(StayingIdsTest, AHeldIdStaysUntilItIsLetGo) {
  held_.Add("nvidia.com/gpu", "GPU-a");
  unhealthy_.OnSent(sick_, clock_.Now());
  clock_.Advance(24h);
  const Leaving leaving = Staying({"GPU-b"});
  EXPECT_THAT(leaving.stay, ElementsAre(Ids("GPU-a")));
  EXPECT_FALSE(leaving.look_again) << "no time will bring it";
  held_ = {};
  EXPECT_THAT(Staying({"GPU-b"}).stay, IsEmpty());
}

// After a restart of the plugin with a GPU gone; a kubelet with a topology policy needs the id.
TEST_F(StayingIdsTest, WhatPodsHoldAtTheStartIsListedFromTheFirstListOn) {
  held_.Add("nvidia.com/gpu", "GPU-gone");
  held_.Add("nvidia.com/gpu", "MIG-gone::2");
  held_.Add("nvidia.com/gpu", "0000:07:00.0");  // another plugin's
  held_.Add("nvidia.com/gpu.shared", "GPU-x");
  const Leaving leaving =
      StayingIds(nullptr, {"GPU-a"}, held_, "nvidia.com/gpu", unhealthy_, clock_.Now());
  EXPECT_THAT(leaving.stay, ElementsAre(Ids("GPU-gone"), Ids("MIG-gone::2")));
}

}  // namespace
}  // namespace ndp::plugin
