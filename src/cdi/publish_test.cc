#include "cdi/publish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/cdi_nodes.h"

namespace ndp::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kGpuKind = "k8s.device-plugin.nvidia.com/gpu";

class PublishTest : public testing::Test {
 protected:
  Offer Run(const std::set<std::string>& held = {}) {
    return Publish(dir_, options_, node_.inventory,
                   Build(options_, node_.inventory, node_.files.fs(), node_.files.fs()), held);
  }
  std::string Uuid(int gpu) const { return node_.inventory.gpus[gpu].uuid(); }

  CdiNode node_;
  Options options_;
  TempDir temp_;
  SpecDir dir_{temp_ / "cdi"};
};

TEST_F(PublishTest, EveryNameOfferedIsOnDisk) {
  FillA100Mig(node_);
  Offer offer = Run();
  EXPECT_EQ(offer.trouble, "");
  EXPECT_THAT(offer.names, SizeIs(3));
  auto on_disk = dir_.Read(kGpuKind);
  ASSERT_TRUE(on_disk);
  for (const auto& [id, name] : offer.names) {
    EXPECT_NE(on_disk->Find(name.substr(kGpuKind.size() + 1)), nullptr) << name;
    EXPECT_EQ(offer.TroubleOf(id), "");
  }
  EXPECT_THAT(offer.TroubleOf(Uuid(1)), HasSubstr("MIG mode"));
}

TEST_F(PublishTest, AllocateNamesAreUniqueAndInOrderExtrasLast) {
  FillEightH100(node_);
  node_.files.Device("/dev/gdrdrv", 235, 0);
  options_.gdrcopy = true;
  options_.naming = Naming::kIndex;
  EXPECT_THAT(
      Run().Names({Uuid(2), Uuid(0), Uuid(2)}),
      ElementsAre("k8s.device-plugin.nvidia.com/gpu=2", "k8s.device-plugin.nvidia.com/gpu=0",
                  "k8s.device-plugin.nvidia.com/gdrcopy=all"));
}

TEST_F(PublishTest, AFolderThatCannotBeWrittenIsTroubleForAll) {
  FillEightH100(node_);
  temp_.Write("cdi", "a file");
  Offer offer = Run();
  EXPECT_THAT(offer.TroubleOf(Uuid(0)), HasSubstr((temp_ / "cdi").string()));
  EXPECT_THAT(offer.names, IsEmpty());
  std::filesystem::remove(temp_ / "cdi");
  EXPECT_EQ(Run().TroubleOf(Uuid(0)), "");
}

TEST_F(PublishTest, AnExtraClassThatCannotBeWrittenIsNotHandedOut) {
  FillEightH100(node_);
  node_.files.Device("/dev/gdrdrv", 235, 0);
  options_.gdrcopy = true;
  std::filesystem::create_directories(temp_ / "cdi/k8s.device-plugin.nvidia.com-gdrcopy.json");
  Offer offer = Run();
  EXPECT_EQ(offer.trouble, "");
  EXPECT_THAT(offer.extras, IsEmpty());
  EXPECT_THAT(offer.warnings, ElementsAre(HasSubstr("gdrcopy")));
}

TEST_F(PublishTest, ARequiredImexChannelHoldsBackAll) {
  FillEightH100(node_);
  options_.imex_channels = {0};
  options_.imex_required = true;
  EXPECT_THAT(Run().TroubleOf(Uuid(0)), HasSubstr("IMEX"));
  node_.files.Device("/dev/nvidia-caps-imex-channels/channel0", 237, 0);
  EXPECT_EQ(Run().TroubleOf(Uuid(0)), "");
}

TEST_F(PublishTest, EntriesThatPodsHoldStayOnDisk) {
  FillEightH100(node_);
  Run();
  const std::string held = Uuid(7);
  const std::string free = Uuid(6);
  node_.inventory.gpus.resize(6);
  Offer offer = Run({held});
  auto on_disk = dir_.Read(kGpuKind);
  EXPECT_NE(on_disk->Find(held), nullptr);
  EXPECT_EQ(on_disk->Find(free), nullptr);
  EXPECT_NE(offer.TroubleOf(held), "");
}

TEST_F(PublishTest, WithoutDevicesTheFileOnDiskStays) {
  FillEightH100(node_);
  Run();
  node_.inventory.gpus.clear();
  Run();
  EXPECT_TRUE(dir_.Read(kGpuKind));
}

TEST_F(PublishTest, WslHasOneId) {
  FillWsl(node_);
  EXPECT_THAT(Run().Names({"all"}), ElementsAre("k8s.device-plugin.nvidia.com/gpu=all"));
}

// The kubelet knows it as "tegra" whatever NVML calls it.
TEST_F(PublishTest, AnIntegratedGpuThatNvmlKnowsGoesByItsIdInTheKubelet) {
  FillTegra(node_);
  node_.inventory.gpus = {MakeGpu(0, "GPU-a", "", "NVIDIA Thor")};
  options_.tegra_by_id = true;
  EXPECT_THAT(Run().Names({"tegra"}), ElementsAre("k8s.device-plugin.nvidia.com/gpu=tegra"));
  EXPECT_EQ(Run().TroubleOf("tegra"), "");
  options_.naming = Naming::kIndex;
  EXPECT_THAT(Run().Names({"tegra"}), ElementsAre("k8s.device-plugin.nvidia.com/gpu=0"));
}

TEST_F(PublishTest, WhatIsOnDiskIsToldAndWhetherThatIsAll) {
  FillEightH100(node_);
  node_.files.Device("/dev/gdrdrv", 235, 0);
  options_.gdrcopy = true;
  Offer offer = Run();
  EXPECT_TRUE(offer.complete);
  EXPECT_THAT(offer.files, SizeIs(2));
  for (const auto& file : offer.files) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  std::filesystem::remove(offer.files.back());
  std::filesystem::create_directories(offer.files.back());
  EXPECT_FALSE(Run().complete);
}

TEST_F(PublishTest, AnotherFileWithOurNamesIsWarnedOf) {
  FillEightH100(node_);
  Run();
  std::filesystem::rename(dir_.FileOf(kGpuKind), temp_ / "cdi/copy.json");
  EXPECT_THAT(Run().warnings, ElementsAre(HasSubstr("copy.json")));
}

TEST_F(PublishTest, TegraHasOneIdUnderBothNamings) {
  FillTegra(node_);
  EXPECT_THAT(Run().Names({"tegra"}), ElementsAre("k8s.device-plugin.nvidia.com/gpu=tegra"));
  options_.naming = Naming::kIndex;
  EXPECT_THAT(Run().Names({"tegra"}), ElementsAre("k8s.device-plugin.nvidia.com/gpu=0"));
}

}  // namespace
}  // namespace ndp::cdi
