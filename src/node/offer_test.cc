#include "node/offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::node {
namespace {
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kResource = "nvidia.com/gpu";

resource::Device DeviceAt(int index, int replicas = 0) {
  resource::Device device;
  device.uuid = "GPU-" + std::to_string(index);
  device.index = std::to_string(index);
  device.gpu = index;
  device.gpu_uuid = device.uuid;
  device.numa_node = 0;
  device.replicas = replicas;
  return device;
}

class OfferTest : public testing::Test {
 protected:
  OfferTest() {
    set_.resources.push_back({.name = kResource, .devices = {DeviceAt(0), DeviceAt(1)}});
  }

  OfferInputs Inputs() {
    return {
        .settings = settings_, .set = set_, .board = board_, .held = held_, .now = MonoTime(1h)};
  }
  std::vector<Offer> Build() { return BuildOffers(Inputs()); }
  // The reason of each device of the first offer, "" where it is Healthy.
  std::vector<std::string> Reasons(const std::vector<Offer>& offers) {
    std::vector<std::string> reasons;
    for (const plugin::ListedDevice& device : offers.at(0).resource.devices) {
      reasons.push_back(device.healthy ? "" : device.reason);
    }
    return reasons;
  }

  config::Settings settings_;
  resource::ResourceSet set_;
  health::HealthBoard board_;
  plugin::HeldDevices held_;
};

TEST_F(OfferTest, EveryDeviceIsListedWithItsNumaNode) {
  const auto offers = Build();
  ASSERT_THAT(offers, SizeIs(1));
  EXPECT_THAT(Reasons(offers), ElementsAre("", ""));
  EXPECT_EQ(offers[0].resource.devices[1].id, "GPU-1");
  EXPECT_EQ(offers[0].resource.devices[1].numa_node, 0);
}

TEST_F(OfferTest, AVerdictReachesEveryReplica) {
  set_.resources[0].devices = {DeviceAt(0, 2), DeviceAt(1, 2)};
  board_.devices["GPU-0"] = {.healthy = false, .reason = "XID 79"};
  EXPECT_THAT(Reasons(Build()), ElementsAre("XID 79", "XID 79", "", ""));
}

// Only where another strategy hands it out as well; else the reason is in device_trouble.
TEST_F(OfferTest, ADeviceWithoutACdiNameIsOfferedWithoutIt) {
  OfferInputs in = Inputs();
  in.without_cdi = {"GPU-1"};
  const auto offers = BuildOffers(in);
  EXPECT_THAT(Reasons(offers), ElementsAre("", ""));
  EXPECT_TRUE(offers[0].resource.units[0].cdi);
  EXPECT_FALSE(offers[0].resource.units[1].cdi);
  in.all_without_cdi = true;
  EXPECT_FALSE(BuildOffers(in)[0].resource.units[0].cdi);
}

TEST_F(OfferTest, WhatAPodHoldsUnderAnotherNameIsNotOfferedTwice) {
  held_.Add("nvidia.com/gpu.shared", "GPU-1::3");
  EXPECT_THAT(Reasons(Build()), ElementsAre("", "a pod holds it as nvidia.com/gpu.shared"));
}

// What waits for nothing must not make the node ask the kubelet for ever.
TEST_F(OfferTest, OnlyWhatIsWithheldOrStaysForAPodWaitsForPods) {
  held_.Add(kResource, "GPU-1");
  board_.devices["GPU-0"] = {.healthy = false, .reason = "XID 79"};
  EXPECT_FALSE(Build()[0].waits_for_pods);
  held_.Add("nvidia.com/gpu.shared", "GPU-1::3");
  const auto offers = Build();
  ASSERT_THAT(offers, SizeIs(2));
  EXPECT_TRUE(offers[0].waits_for_pods);
  EXPECT_TRUE(offers[1].waits_for_pods);
}

TEST_F(OfferTest, WhatAPodHoldsWholeIsNotOfferedInReplicas) {
  set_.resources[0].devices = {DeviceAt(0, 2)};
  held_.Add(kResource, "GPU-0");
  const auto reasons = Reasons(Build());
  EXPECT_THAT(reasons[0], HasSubstr("a pod holds it"));
  EXPECT_THAT(reasons[1], HasSubstr("a pod holds it"));
}

TEST_F(OfferTest, AHeldGpuBlocksItsMigDevices) {
  held_.Add("nvidia.com/other", "GPU-parent");
  OfferInputs in = Inputs();
  in.relatives["GPU-0"] = {"GPU-parent"};
  EXPECT_THAT(Reasons(BuildOffers(in)), ElementsAre("a pod holds it as nvidia.com/other", ""));
}

TEST_F(OfferTest, AnIdThatAPodHoldsAndNobodyKnowsIsListedUnhealthyFromTheFirstList) {
  held_.Add(kResource, "GPU-gone");
  const auto offers = Build();
  ASSERT_THAT(offers[0].resource.devices, SizeIs(3));
  EXPECT_EQ(offers[0].resource.devices[2].id, "GPU-gone");
  EXPECT_FALSE(offers[0].resource.devices[2].healthy);
}

TEST_F(OfferTest, IdsOfOtherFormsAreNotOurs) {
  held_.Add(kResource, "uuid-of-somebody-else");
  held_.Add("nvidia.com/theirs", "whatever");
  EXPECT_THAT(Build(), SizeIs(1));
  EXPECT_THAT(Build()[0].resource.devices, SizeIs(2));
}

TEST_F(OfferTest, AResourceThatIsHeldLivesOnWithoutDevices) {
  held_.Add("nvidia.com/old", "GPU-0");
  const auto offers = Build();
  ASSERT_THAT(offers, SizeIs(2));
  EXPECT_EQ(offers[1].resource.name, "nvidia.com/old");
  EXPECT_FALSE(offers[1].retire);
  EXPECT_FALSE(offers[1].resource.devices[0].healthy);
}

TEST_F(OfferTest, AResourceOfWhichNothingIsWaitedForIsRetired) {
  const plugin::ResourceView view(plugin::Resource{.name = "nvidia.com/old"});
  OfferInputs in = Inputs();
  in.shown["nvidia.com/old"] = {.view = &view, .unhealthy = nullptr};
  const auto offers = BuildOffers(in);
  ASSERT_THAT(offers, SizeIs(2));
  EXPECT_TRUE(offers[1].retire);
}

TEST_F(OfferTest, IndexInDoubtHoldsBackOnlyTheIndexStrategy) {
  OfferInputs in = Inputs();
  in.index_in_doubt = true;
  EXPECT_THAT(Reasons(BuildOffers(in)), ElementsAre("", ""));
  settings_.plugin.device_id_strategy = config::DeviceIdStrategy::kIndex;
  EXPECT_THAT(Reasons(BuildOffers(in)),
              ElementsAre(HasSubstr("enumeration"), HasSubstr("enumeration")));
}

TEST_F(OfferTest, TroubleOfAllReachesAll) {
  OfferInputs in = Inputs();
  in.trouble = "the IMEX channel 0 is required";
  EXPECT_THAT(Reasons(BuildOffers(in)), ElementsAre(in.trouble, in.trouble));
}

}  // namespace
}  // namespace ndp::node
