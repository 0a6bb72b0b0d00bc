#include "resource/sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resource/build.h"
#include "resource/test_inventory.h"
#include "testing/result_matchers.h"

namespace ndp::resource {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kGpu = "nvidia.com/gpu";

config::Settings Sharing(std::vector<config::SharedResource> entries,
                         config::SharingStrategy strategy = config::SharingStrategy::kTimeSlicing) {
  config::Settings settings;
  settings.sharing.strategy = strategy;
  settings.sharing.resources = std::move(entries);
  return settings;
}

Result<ResourceSet> Load(const config::Settings& settings, const inventory::Inventory& inventory) {
  return Build(settings, inventory, {.loading = true});
}

// {name: {index: replicas}}
std::map<std::string, std::map<std::string, int>> Shape(const ResourceSet& set) {
  std::map<std::string, std::map<std::string, int>> shape;
  for (const Resource& resource : set.resources) {
    for (const Device& device : resource.devices) {
      shape[resource.name][device.index] = device.replicas;
    }
  }
  return shape;
}

TEST(SharingTest, AllDevicesGetReplicasWithStableIds) {
  const auto set = Load(Sharing({TestEntry(0, kGpu, 4)}), TestGpus(2));
  ASSERT_THAT(set, IsOk());
  EXPECT_THAT(Shape(*set), ElementsAre(Pair(kGpu, ElementsAre(Pair("0", 4), Pair("1", 4)))));
  const Resource& resource = set->resources[0];
  EXPECT_EQ(resource.sharing, config::SharingStrategy::kTimeSlicing);
  EXPECT_EQ(resource.ids(), 8U);
  EXPECT_EQ(resource.devices[1].Id(0), "GPU-1::0");
  EXPECT_EQ(resource.devices[1].Id(3), "GPU-1::3");
}

TEST(SharingTest, OneReplicaIsNotShared) {
  const auto set = Load(Sharing({TestEntry(0, kGpu, 1)}), TestGpus(1));
  ASSERT_THAT(set, IsOk());
  EXPECT_EQ(set->resources[0].devices[0].Id(0), "GPU-0");
  EXPECT_EQ(set->resources[0].sharing, config::SharingStrategy::kNone);
}

TEST(SharingTest, OneGpuSharedUnderANameOfItsOwnLeavesTheOthersExclusive) {
  const auto set =
      Load(Sharing({TestEntry(0, kGpu, 4, TestList({config::GpuIndex{0}}), "nvidia.com/gpu.dev")}),
           TestGpus(3));
  ASSERT_THAT(set, IsOk());
  EXPECT_THAT(Shape(*set), ElementsAre(Pair(kGpu, ElementsAre(Pair("1", 0), Pair("2", 0))),
                                       Pair("nvidia.com/gpu.dev", ElementsAre(Pair("0", 4)))));
}

TEST(SharingTest, ListsGoFirstThenCountsThenAll) {
  const auto set = Load(
      Sharing({TestEntry(0, kGpu, 2, config::AllDevices{}, "nvidia.com/rest"),
               TestEntry(1, kGpu, 3, config::DeviceCount{2}, "nvidia.com/two"),
               TestEntry(2, kGpu, 4, TestList({config::DeviceUuid{"GPU-0"}}), "nvidia.com/one")}),
      TestGpus(4));
  ASSERT_THAT(set, IsOk());
  EXPECT_THAT(Shape(*set),
              ElementsAre(Pair("nvidia.com/one", ElementsAre(Pair("0", 4))),
                          Pair("nvidia.com/rest", ElementsAre(Pair("3", 2))),
                          Pair("nvidia.com/two", ElementsAre(Pair("1", 3), Pair("2", 3)))));
}

TEST(SharingTest, OneDeviceUnderTwoNamesInTwoEntriesIsRefusedWithBothNamed) {
  const auto settings =
      Sharing({TestEntry(0, kGpu, 2, TestList({config::GpuIndex{1}}), "nvidia.com/a"),
               TestEntry(1, kGpu, 2, TestList({config::DeviceUuid{"GPU-1"}}), "nvidia.com/b")});
  EXPECT_THAT(Load(settings, TestGpus(2)),
              IsErrorThat(Code::kInvalidArgument,
                          AllOf(HasSubstr("resources[0] (line 10) and "),
                                HasSubstr("resources[1] (line 11) both name device 1 (GPU-1)"))));
}

TEST(SharingTest, DeviceThatComesToBeNamedTwiceWhileRunningStaysWithTheFirst) {
  const auto settings =
      Sharing({TestEntry(0, kGpu, 2, TestList({config::GpuIndex{1}}), "nvidia.com/a"),
               TestEntry(1, kGpu, 2, TestList({config::DeviceUuid{"GPU-1"}}), "nvidia.com/b")});
  const auto set = Build(settings, TestGpus(2), {});
  ASSERT_THAT(set, IsOk());
  EXPECT_THAT(Shape(*set), ElementsAre(Pair("nvidia.com/a", ElementsAre(Pair("1", 2))),
                                       Pair(kGpu, ElementsAre(Pair("0", 0)))));
  EXPECT_THAT(set->warnings, ElementsAre(HasSubstr("both name device 1")));
}

TEST(SharingTest, DeviceTwiceInOneListIsRefused) {
  const auto settings = Sharing(
      {TestEntry(0, kGpu, 2, TestList({config::GpuIndex{1}, config::PciBusId{"0000:01:00.0"}}))});
  EXPECT_THAT(
      Load(settings, TestGpus(2)),
      IsErrorThat(Code::kInvalidArgument, HasSubstr("names device 1 (GPU-1) a second time")));
}

TEST(SharingTest, UnknownDeviceIsRefusedAtLoadAndAWarningLater) {
  const auto settings = Sharing({TestEntry(
      0, kGpu, 2, TestList({config::GpuIndex{0}, config::GpuIndex{7}}), "nvidia.com/a")});
  EXPECT_THAT(Load(settings, TestGpus(2)),
              IsErrorThat(Code::kInvalidArgument,
                          HasSubstr("devices[0] (line 30): 7 is no device of nvidia.com/gpu: there "
                                    "are 0 (GPU-0), 1 (GPU-1)")));
  const auto later = Build(settings, TestGpus(2), {});
  ASSERT_THAT(later, IsOk());
  EXPECT_THAT(later->warnings, ElementsAre(HasSubstr("7 is no device")));
  EXPECT_EQ(later->Find("nvidia.com/a")->devices.size(), 1U);
}

TEST(SharingTest, UnknownDeviceMayBeTheGpuThatCannotBeRead) {
  auto inventory = TestGpus(2);
  inventory.broken.push_back({.index = 2, .reason = "GPU is lost"});
  const auto settings = Sharing({TestEntry(0, kGpu, 2, TestList({config::GpuIndex{2}}))});
  EXPECT_THAT(Load(settings, inventory), IsOk());
}

TEST(SharingTest, CountOverWhatThereIsIsRefusedAtLoad) {
  const auto settings = Sharing({TestEntry(0, kGpu, 2, config::DeviceCount{3})});
  EXPECT_THAT(
      Load(settings, TestGpus(2)),
      IsErrorThat(Code::kInvalidArgument,
                  HasSubstr("devices (line 20): 3 devices of nvidia.com/gpu: want at most 2")));
  EXPECT_THAT(Load(settings, TestGpus(0)), IsOk());
}

TEST(SharingTest, TwoNumbersOfReplicasUnderOneNameAreRefused) {
  const auto settings = Sharing({TestEntry(0, kGpu, 2, TestList({config::GpuIndex{0}})),
                                 TestEntry(1, kGpu, 3, TestList({config::GpuIndex{1}}))});
  EXPECT_THAT(
      Load(settings, TestGpus(2)),
      IsErrorThat(Code::kInvalidArgument,
                  HasSubstr("give nvidia.com/gpu different numbers of replicas (2 and 3)")));
}

TEST(SharingTest, EntryForAResourceThatIsNotHereIsAWarning) {
  const auto set = Load(Sharing({TestEntry(0, "nvidia.com/mig-1g.5gb", 2)}), TestGpus(1));
  ASSERT_THAT(set, IsOk());
  EXPECT_THAT(
      set->warnings,
      ElementsAre(HasSubstr("this node has no nvidia.com/mig-1g.5gb: it has nvidia.com/gpu")));
}

TEST(SharingTest, MpsMarksItsDevicesAndRefusesMigOnes) {
  config::Settings settings = Sharing({TestEntry(0, kGpu, 2)}, config::SharingStrategy::kMps);
  settings.sharing.fail_requests_greater_than_one = true;
  settings.common.mig_strategy = config::MigStrategy::kSingle;
  const auto whole = Load(settings, TestGpus(1));
  ASSERT_THAT(whole, IsOk());
  EXPECT_TRUE(whole->resources[0].devices[0].mps);
  EXPECT_TRUE(whole->resources[0].fail_requests_greater_than_one);
  EXPECT_EQ(whole->resources[0].devices[0].trouble, "");
  const auto mig = Load(settings, TestInventory({TestMigGpu(0, {"1g.5gb"})}));
  ASSERT_THAT(mig, IsOk());
  EXPECT_THAT(mig->resources[0].devices[0].trouble, HasSubstr("MPS does not share MIG devices"));
}

TEST(SharingTest, MpsAndExclusiveDevicesUnderOneNameAreRefused) {
  const auto settings = Sharing({TestEntry(0, kGpu, 2, TestList({config::GpuIndex{0}}))},
                                config::SharingStrategy::kMps);
  EXPECT_THAT(Load(settings, TestGpus(2)),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("with MPS and without (1)")));
  const auto later = Build(settings, TestGpus(2), {});
  ASSERT_THAT(later, IsOk());
  EXPECT_THAT(later->resources[0].devices[1].trouble, HasSubstr("with MPS and without"));
}

TEST(SharingTest, ListOverTheKubeletsLimitIsRefusedWithSizeLimitAndWhatFits) {
  const auto settings = Sharing({TestEntry(0, kGpu, 90'000)});
  EXPECT_THAT(Load(settings, TestGpus(2)),
              IsErrorThat(Code::kInvalidArgument,
                          AllOf(HasSubstr("resources[0] (line 10): 90000 replicas"),
                                HasSubstr("limit of 4194304"), HasSubstr("want at most "))));
}

// A GPU that comes while the plugin runs may not end the stream of those that are there.
TEST(SharingTest, AListThatGrowsOverTheLimitKeepsTheDevicesItHad) {
  const auto settings = Sharing({TestEntry(0, kGpu, 50'000)});
  inventory::Inventory two = TestGpus(3);
  two.gpus.erase(two.gpus.begin());  // the newcomer will have the lowest index
  const auto former = Load(settings, two);
  ASSERT_THAT(former, IsOk());
  const auto later = Build(settings, TestGpus(3), {.former = &*former});
  ASSERT_THAT(later, IsOk());
  ASSERT_THAT(later->resources[0].devices, testing::SizeIs(2));
  EXPECT_EQ(later->resources[0].devices[0].uuid, "GPU-1");
  EXPECT_EQ(later->resources[0].devices[1].uuid, "GPU-2");
  ASSERT_THAT(later->not_offered, testing::SizeIs(1));
  EXPECT_EQ(later->not_offered[0].index, "0");
  EXPECT_THAT(later->not_offered[0].reason, HasSubstr("over the kubelet's limit"));
  EXPECT_THAT(later->warnings, testing::Contains(HasSubstr("want at most ")));
}

TEST(SharingTest, WithoutAFormerListTheFirstDevicesThatFitAreOffered) {
  const auto later = Build(Sharing({TestEntry(0, kGpu, 50'000)}), TestGpus(3), {});
  ASSERT_THAT(later, IsOk());
  ASSERT_THAT(later->resources[0].devices, testing::SizeIs(2));
  EXPECT_EQ(later->resources[0].devices[1].index, "1");
}

}  // namespace
}  // namespace ndp::resource
