#include "resource/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resource/list_size.h"
#include "resource/mig_layout.h"
#include "resource/offered_devices.h"
#include "resource/test_inventory.h"
#include "testing/result_matchers.h"

namespace ndp::resource {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

config::Settings With(config::MigStrategy strategy) {
  config::Settings settings;
  settings.common.mig_strategy = strategy;
  return settings;
}

ResourceSet Built(const config::Settings& settings, const inventory::Inventory& inventory,
                  const BuildContext& context = {.loading = true}) {
  auto set = Build(settings, inventory, context);
  EXPECT_THAT(set, IsOk());
  return set.ok() ? *std::move(set) : ResourceSet{};
}

// {name: {indices of the devices that may be handed out}}
std::map<std::string, std::vector<std::string>> Usable(const ResourceSet& set) {
  std::map<std::string, std::vector<std::string>> usable;
  for (const Resource& resource : set.resources) {
    for (const Device& device : resource.devices) {
      if (device.trouble.empty()) usable[resource.name].push_back(device.index);
    }
  }
  return usable;
}

inventory::Inventory MixedNode() {
  return TestInventory({TestGpu(0), TestMigGpu(1, {"1g.5gb", "1g.5gb", "3g.20gb"}),
                        TestMigGpu(2, {"1g.5gb+me", "1c.2g.10gb"}), TestMigGpu(3, {})});
}

TEST(BuildTest, NoneOffersEveryGpuAsAWhole) {
  EXPECT_THAT(Usable(Built(With(config::MigStrategy::kNone), MixedNode())),
              ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0", "1", "2", "3"))));
}

// Only where the plugin hands out device nodes itself does it have to know them.
TEST(BuildTest, AGpuWithoutAKnownNodeIsOfferedWhereNoNodeIsHandedOut) {
  inventory::Inventory inventory = TestInventory({TestGpu(0), TestGpu(1)});
  inventory.gpus[0].device_nodes.clear();
  config::Settings settings;
  EXPECT_THAT(Usable(Built(settings, inventory)),
              ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0", "1"))));
  settings.plugin.pass_device_specs = true;
  EXPECT_THAT(Usable(Built(settings, inventory)),
              ElementsAre(Pair("nvidia.com/gpu", ElementsAre("1"))));
}

TEST(BuildTest, MixedOffersEachProfileUnderItsName) {
  const ResourceSet set = Built(With(config::MigStrategy::kMixed), MixedNode());
  EXPECT_THAT(Usable(set), ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0")),
                                       Pair("nvidia.com/mig-1c.2g.10gb", ElementsAre("2:1")),
                                       Pair("nvidia.com/mig-1g.5gb", ElementsAre("1:0", "1:1")),
                                       Pair("nvidia.com/mig-1g.5gb.me", ElementsAre("2:0")),
                                       Pair("nvidia.com/mig-3g.20gb", ElementsAre("1:2"))));
  EXPECT_THAT(set.not_offered,
              ElementsAre(NotOffered{"3", "GPU-3", "it is in MIG mode and has no MIG devices"}));
  EXPECT_THAT(set.warnings, ElementsAre(HasSubstr("GPU 3 (GPU-3) is not offered")));
}

TEST(BuildTest, MigDeviceHasItsParentsNodeAndItsOwnInstance) {
  const ResourceSet set = Built(With(config::MigStrategy::kMixed), MixedNode());
  const Device& device = set.Find("nvidia.com/mig-3g.20gb")->devices[0];
  EXPECT_EQ(device.uuid, "MIG-1-2");
  EXPECT_EQ(device.gpu_uuid, "GPU-1");
  EXPECT_EQ(device.gpu, 1);
  EXPECT_THAT(device.numa_node, Optional(0));
  EXPECT_THAT(device.gpu_instance, Optional(9U));
  EXPECT_THAT(device.compute_instance, Optional(0U));
  EXPECT_THAT(device.device_nodes, ElementsAre("/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap30"));
  EXPECT_TRUE(device.mig());
}

TEST(BuildTest, MixedNeverOffersAMigDeviceWhoseProfileCannotBeTold) {
  auto inventory = TestInventory({TestMigGpu(0, {"", "1g.5gb"})});
  inventory.gpus[0].mig[0].trouble = "no permission to read its attributes";
  const ResourceSet set = Built(With(config::MigStrategy::kMixed), inventory);
  EXPECT_THAT(Usable(set), ElementsAre(Pair("nvidia.com/mig-1g.5gb", ElementsAre("0:1"))));
  EXPECT_THAT(set.not_offered,
              ElementsAre(NotOffered{"0:0", "MIG-0-0", "no permission to read its attributes"}));
}

TEST(BuildTest, TroubleOfADeviceIsItsOwnAndOfAGpuThatOfAllItsDevices) {
  auto inventory =
      TestInventory({TestMigGpu(0, {"1g.5gb", "1g.5gb"}), TestMigGpu(1, {"1g.5gb"}), TestGpu(2)});
  inventory.gpus[0].mig[1].trouble = "no capability node";
  inventory.gpus[1].trouble = "GPU is lost";
  const ResourceSet set = Built(With(config::MigStrategy::kMixed), inventory);
  const auto& devices = set.Find("nvidia.com/mig-1g.5gb")->devices;
  EXPECT_THAT(devices, ElementsAre(Field(&Device::trouble, ""),
                                   Field(&Device::trouble, "no capability node"),
                                   Field(&Device::trouble, "GPU is lost")));
}

TEST(BuildTest, GpuWhoseMigCannotBeReadIsNeitherOfferedWholeNorInTheOthersWay) {
  auto inventory = TestInventory({TestMigGpu(0, {"1g.5gb"}), TestMigGpu(1, {}), TestGpu(2)});
  const nvml::Failure failure = {
      .status = nvml::kNoPermission, .call = "nvmlDeviceGetMigMode", .text = "no permission"};
  inventory.gpus[1].nvml.mig_failure = failure;
  inventory.gpus[2].nvml.mig_failure = failure;
  const ResourceSet mixed = Built(With(config::MigStrategy::kMixed), inventory);
  EXPECT_THAT(Usable(mixed), ElementsAre(Pair("nvidia.com/mig-1g.5gb", ElementsAre("0:0"))));
  EXPECT_THAT(mixed.not_offered,
              ElementsAre(Field(&NotOffered::reason, HasSubstr("MIG devices cannot be read: "))));
  EXPECT_THAT(mixed.Find("nvidia.com/gpu")->devices[0].trouble,
              HasSubstr("MIG mode cannot be read: nvmlDeviceGetMigMode"));
  EXPECT_THAT(Usable(Built(With(config::MigStrategy::kSingle), inventory)),
              ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0:0"))));
  EXPECT_THAT(Usable(Built(With(config::MigStrategy::kNone), inventory)),
              ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0", "1", "2"))));
}

TEST(BuildTest, SingleOffersTheOneProfileAsGpu) {
  const auto inventory =
      TestInventory({TestMigGpu(0, {"1g.5gb", "1g.5gb"}), TestMigGpu(1, {"1g.5gb"})});
  EXPECT_THAT(Usable(Built(With(config::MigStrategy::kSingle), inventory)),
              ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0:0", "0:1", "1:0"))));
  EXPECT_THAT(Usable(Built(With(config::MigStrategy::kSingle), TestGpus(2))),
              ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0", "1"))));
}

TEST(BuildTest, SingleListsEverythingUnhealthyWhileLayoutsDiffer) {
  const auto inventory =
      TestInventory({TestMigGpu(0, {"1g.5gb"}), TestMigGpu(1, {"3g.20gb"}), TestGpu(2)});
  const ResourceSet set = Built(With(config::MigStrategy::kSingle), inventory);
  ASSERT_EQ(set.resources.size(), 1U);
  EXPECT_EQ(set.resources[0].devices.size(), 3U);
  EXPECT_THAT(
      set.resources[0].devices,
      Each(Field(&Device::trouble, AllOf(HasSubstr("single"), HasSubstr("MIG 3g.20gb on GPU 1")))));
}

TEST(BuildTest, SingleMajorityListsTheOthersUnhealthy) {
  const auto inventory = TestInventory(
      {TestMigGpu(0, {"3g.20gb"}), TestMigGpu(1, {"1g.5gb"}), TestMigGpu(2, {"1g.5gb"})});
  config::Settings settings = With(config::MigStrategy::kSingle);
  settings.plugin.mig_single_partial = config::MigSinglePartial::kMajority;
  const ResourceSet first = Built(settings, inventory);
  EXPECT_THAT(Usable(first), IsEmpty());
  const MigLayouts layouts = LayoutsOf(inventory);
  const ResourceSet second = Built(settings, inventory, {.previous_scan = &layouts});
  EXPECT_THAT(Usable(second), ElementsAre(Pair("nvidia.com/gpu", ElementsAre("1:0", "2:0"))));
  EXPECT_THAT(second.resources[0].devices[0].trouble, HasSubstr("majority serves MIG 1g.5gb"));
}

TEST(BuildTest, ExcludedGpuHasNoSayInTheLayout) {
  config::Settings settings = With(config::MigStrategy::kSingle);
  settings.devices.exclude = {TestSelector(config::GpuIndex{1})};
  const auto inventory = TestInventory({TestMigGpu(0, {"1g.5gb"}), TestGpu(1)});
  const ResourceSet set = Built(settings, inventory);
  EXPECT_THAT(Usable(set), ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0:0"))));
  EXPECT_THAT(set.not_offered, ElementsAre(Field(&NotOffered::uuid, "GPU-1")));
}

TEST(BuildTest, NamesByPatternFirstMatchWins) {
  config::Settings settings;
  settings.names.gpus = {{{"resources.gpus[0]", 3}, "Tesla T4", "nvidia.com/t4"},
                         {{"resources.gpus[1]", 4}, "*A100*", "nvidia.com/a100"},
                         {{"resources.gpus[2]", 5}, "*", "nvidia.com/other"}};
  const auto inventory = TestInventory({TestGpu(0, "Tesla T4"), TestGpu(1, "Tesla T4"), TestGpu(2),
                                        TestGpu(3), TestGpu(4, "NVIDIA L4")});
  EXPECT_THAT(Usable(Built(settings, inventory)),
              ElementsAre(Pair("nvidia.com/a100", ElementsAre("2", "3")),
                          Pair("nvidia.com/other", ElementsAre("4")),
                          Pair("nvidia.com/t4", ElementsAre("0", "1"))));
}

TEST(BuildTest, WhatNoPatternMatchesKeepsItsNameAndUnusedPatternsAreTold) {
  config::Settings settings = With(config::MigStrategy::kMixed);
  settings.names.mig = {{{"resources.mig[0]", 3}, "1g.5gb", "nvidia.com/mig-small"},
                        {{"resources.mig[1]", 4}, "7g.*", "nvidia.com/mig-big"}};
  const ResourceSet set = Built(settings, TestInventory({TestMigGpu(0, {"1g.5gb", "3g.20gb"})}));
  EXPECT_THAT(Usable(set), ElementsAre(Pair("nvidia.com/mig-3g.20gb", ElementsAre("0:1")),
                                       Pair("nvidia.com/mig-small", ElementsAre("0:0"))));
  EXPECT_THAT(set.warnings, ElementsAre(HasSubstr("resources.mig[1] (line 4): pattern \"7g.*\" "
                                                  "matches no MIG profile: there is 1g.5gb, "
                                                  "3g.20gb")));
}

TEST(BuildTest, TwoKindsUnderOneNameAreTold) {
  config::Settings settings = With(config::MigStrategy::kMixed);
  settings.names.mig = {{{"resources.mig[0]", 3}, "*", "nvidia.com/gpu"}};
  const ResourceSet set = Built(settings, TestInventory({TestGpu(0), TestMigGpu(1, {"1g.5gb"})}));
  EXPECT_THAT(set.warnings,
              ElementsAre(HasSubstr("nvidia.com/gpu holds devices of different kinds: "
                                    "MIG 1g.5gb, full GPUs")));
}

TEST(BuildTest, ResourceNameFollowsTheProfile) {
  EXPECT_EQ(MigResourceName("1g.10gb"), "nvidia.com/mig-1g.10gb");
  EXPECT_EQ(MigResourceName("1g.10gb+me.all"), "nvidia.com/mig-1g.10gb.me.all");
  EXPECT_EQ(MigResourceName("1g.10gb-me"), "nvidia.com/mig-1g.10gb-me");
}

TEST(BuildTest, ALostGpuThatIsListedOnIsNotSaidToBeLeftOut) {
  inventory::Inventory inventory = TestInventory({TestGpu(0), TestGpu(1)});
  inventory.gpus[1].trouble = "lost: GPU is lost";
  inventory.broken.push_back({.index = 1, .reason = "GPU is lost"});
  const ResourceSet set = Built(With(config::MigStrategy::kNone), inventory);
  EXPECT_EQ(set.resources.at(0).devices.size(), 2U);
  EXPECT_THAT(set.not_offered, IsEmpty());
}

TEST(BuildTest, GpuThatCannotBeReadIsNotOfferedAndHidesNoOther) {
  auto inventory = TestGpus(2);
  inventory.broken.push_back({.index = 2, .reason = "nvmlDeviceGetUUID: GPU is lost (15)"});
  const ResourceSet set = Built({}, inventory);
  EXPECT_THAT(Usable(set), ElementsAre(Pair("nvidia.com/gpu", ElementsAre("0", "1"))));
  EXPECT_THAT(set.not_offered,
              ElementsAre(NotOffered{"2", "", "nvmlDeviceGetUUID: GPU is lost (15)"}));
}

TEST(BuildTest, DevicesComeByIndexWhateverTheirUuids) {
  std::vector<inventory::Gpu> gpus;
  for (unsigned i = 0; i < 12; ++i) gpus.push_back(TestGpu(i));
  const ResourceSet set = Built({}, TestInventory(std::move(gpus)));
  EXPECT_EQ(set.resources[0].devices[2].index, "2");
  EXPECT_EQ(set.resources[0].devices[10].index, "10");
}

TEST(BuildTest, SameInputsGiveAnEqualResource) {
  const auto settings = With(config::MigStrategy::kMixed);
  const ResourceSet before = Built(settings, MixedNode());
  EXPECT_EQ(before, Built(settings, MixedNode()));
  auto changed = MixedNode();
  changed.gpus[0].trouble = "GPU is lost";
  const ResourceSet after = Built(settings, changed);
  EXPECT_NE(*before.Find("nvidia.com/gpu"), *after.Find("nvidia.com/gpu"));
  EXPECT_EQ(*before.Find("nvidia.com/mig-1g.5gb"), *after.Find("nvidia.com/mig-1g.5gb"));
}

TEST(BuildTest, TegraIsOneDeviceWithoutNodes) {
  inventory::Inventory inventory;
  inventory.platform = inventory::Platform::kTegra;
  const ResourceSet set = Built({}, inventory);
  ASSERT_EQ(set.resources.size(), 1U);
  EXPECT_EQ(set.resources[0].name, "nvidia.com/gpu");
  ASSERT_EQ(set.resources[0].devices.size(), 1U);
  EXPECT_EQ(set.resources[0].devices[0].uuid, "tegra");
  EXPECT_THAT(set.resources[0].devices[0].device_nodes, IsEmpty());
}

TEST(BuildTest, WslIsOneDeviceForAllGpus) {
  inventory::Inventory inventory = TestGpus(2);
  inventory.platform = inventory::Platform::kWsl;
  const ResourceSet set = Built({}, inventory);
  ASSERT_EQ(set.resources[0].devices.size(), 1U);
  EXPECT_EQ(set.resources[0].devices[0].uuid, "all");
  EXPECT_THAT(set.resources[0].devices[0].device_nodes, ElementsAre("/dev/dxg"));
}

TEST(BuildTest, WslWithoutNvmlIsOneDeviceTooAndNoneWhereNvmlCountsNoGpu) {
  inventory::Inventory inventory;
  inventory.platform = inventory::Platform::kWsl;
  EXPECT_EQ(Built({}, inventory).resources.size(), 1U);
  inventory.driver.driver_version = "570.86.15";
  EXPECT_THAT(Built({}, inventory).resources, IsEmpty());
}

TEST(BuildTest, NoGpuMeansNoResourceAndNothingToComplainOf) {
  config::Settings settings;
  settings.sharing.strategy = config::SharingStrategy::kTimeSlicing;
  settings.sharing.resources = {TestEntry(0, "nvidia.com/gpu", 2, TestList({config::GpuIndex{3}}))};
  const ResourceSet set = Built(settings, TestGpus(0));
  EXPECT_THAT(set.resources, IsEmpty());
  EXPECT_THAT(set.warnings, IsEmpty());
}

TEST(ScoresOfTest, NumaNodesAloneUntilLinksAreRead) {
  const PairScores scores = ScoresOf(TestGpus(6));
  EXPECT_EQ(scores.Score(0, 3), kScoreSameNode);
  EXPECT_EQ(scores.Score(3, 4), kScoreAcross);
  EXPECT_TRUE(scores.SameNumaNode(4, 5));
}

TEST(ScoresOfTest, LinksByUuidWhereTheyAreKnown) {
  auto inventory = TestGpus(3);
  inventory::LinkMatrix links;
  links.pairs[{"GPU-0", "GPU-2"}] = {.ancestor = 30, .nvlinks = 12};
  links.pairs[{"GPU-2", "GPU-0"}] = {.ancestor = 30, .nvlinks = 12};
  inventory.links = std::make_shared<const inventory::LinkMatrix>(links);
  const PairScores scores = ScoresOf(inventory);
  EXPECT_EQ(scores.Score(0, 2), 1230);
  EXPECT_EQ(scores.Score(2, 0), 1230);
  EXPECT_EQ(scores.Score(0, 1), kScoreSameNode);
}

}  // namespace
}  // namespace ndp::resource
