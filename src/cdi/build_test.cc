#include "cdi/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cdi/text.h"
#include "testing/cdi_nodes.h"
#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

class BuildTest : public testing::Test {
 protected:
  Built Run() const { return Build(options_, node_.inventory, node_.files.fs(), node_.files.fs()); }
  std::vector<std::string> Names(const Built& built) const {
    std::vector<std::string> names;
    if (const Spec* spec = built.Find("gpu")) {
      for (const Device& device : spec->devices) names.push_back(device.name);
    }
    return names;
  }

  CdiNode node_;
  Options options_;
};

TEST_F(BuildTest, NoGpuIsNoFileAndNoTrouble) {
  FillEightH100(node_);
  node_.inventory.gpus.clear();
  Built built = Run();
  EXPECT_THAT(built.specs, IsEmpty());
  EXPECT_EQ(built.gpu_trouble, "");
}

TEST_F(BuildTest, NoGpuNeedsNoDriverFiles) {
  node_.inventory.platform = inventory::Platform::kNvml;
  EXPECT_EQ(Run().gpu_trouble, "");
}

TEST_F(BuildTest, OnlyEmptyMigGpusIsNoFile) {
  FillEightH100(node_);
  for (inventory::Gpu& gpu : node_.inventory.gpus) {
    gpu.nvml.mig_mode = nvml::MigMode{.current = true, .pending = true};
  }
  Built built = Run();
  EXPECT_THAT(built.specs, IsEmpty());
  EXPECT_EQ(built.gpu_trouble, "");
  EXPECT_THAT(built.troubles,
              Contains(Pair(node_.inventory.gpus[0].uuid(), HasSubstr("MIG mode"))));
}

TEST_F(BuildTest, ADeviceWithoutItsNodeIsLeftOutAlone) {
  FillEightH100(node_);
  node_.inventory.gpus[3].device_nodes = {"/dev/nvidia99"};
  Built built = Run();
  EXPECT_EQ(Names(built).size(), 7U);
  EXPECT_THAT(built.troubles,
              ElementsAre(Pair(node_.inventory.gpus[3].uuid(), HasSubstr("/dev/nvidia99"))));
}

TEST_F(BuildTest, AMigDeviceWithoutCapabilityNodesIsLeftOutAlone) {
  FillA100Mig(node_);
  inventory::MigDevice& mig = node_.inventory.gpus[1].mig[0];
  mig.device_nodes.clear();
  mig.trouble = "mig-minors has no entry gpu1/gi1/access";
  Built built = Run();
  EXPECT_THAT(Names(built), Not(Contains(mig.nvml.uuid)));
  EXPECT_THAT(Names(built), Contains(node_.inventory.gpus[1].mig[1].nvml.uuid));
  EXPECT_THAT(built.troubles, Contains(Pair(mig.nvml.uuid, mig.trouble)));
}

TEST_F(BuildTest, TroubleWithTheDriverFilesCostsTheGpuClassAlone) {
  FillEightH100(node_);
  node_.inventory.driver.driver_version = "999.1";
  node_.files.Device("/dev/gdrdrv", 235, 0);
  options_.gdrcopy = true;
  Built built = Run();
  EXPECT_EQ(built.Find("gpu"), nullptr);
  EXPECT_THAT(built.gpu_trouble, HasSubstr("libcuda.so.999.1"));
  EXPECT_NE(built.Find("gdrcopy"), nullptr);
}

TEST_F(BuildTest, NamesThatCdiForbidsCostTheirDevice) {
  FillA100Mig(node_);
  node_.inventory.gpus[1].mig[0].nvml.uuid = "MIG-GPU-8a5e/3/0";
  EXPECT_THAT(Run().troubles, Contains(Pair("MIG-GPU-8a5e/3/0", HasSubstr("device name"))));
}

TEST_F(BuildTest, TwoDevicesOfOneNameCostTheSecond) {
  FillEightH100(node_);
  node_.inventory.gpus[1].nvml.uuid = node_.inventory.gpus[0].uuid();
  EXPECT_EQ(Names(Run()).size(), 7U);
}

TEST_F(BuildTest, TypeIndexNamesAndAllDevice) {
  FillA100Mig(node_);
  options_.naming = Naming::kTypeIndex;
  options_.all_device = true;
  Built built = Run();
  EXPECT_THAT(Names(built), ElementsAre("all", "gpu0", "mig1:0", "mig1:1"));
  // One node of the parent, three of the first GPU, four capabilities.
  EXPECT_EQ(built.Find("gpu")->Find("all")->edits.device_nodes.size(), 8U);
}

// The order in which the file has the devices, which is that of their names.
TEST_F(BuildTest, TheAllDeviceHasTheHooksOfTheOthersInTheirOrder) {
  FillA100Mig(node_);
  node_.inventory.gpus[1].mig.clear();
  node_.inventory.gpus[1].nvml.mig_mode = {};
  node_.inventory.gpus[0].nvml.uuid = "GPU-z";
  node_.inventory.gpus[1].nvml.uuid = "GPU-a";
  options_.all_device = true;
  const Built built = Run();
  ASSERT_THAT(Names(built), ElementsAre("GPU-a", "GPU-z", "all"));
  const std::vector<Device>& devices = built.Find("gpu")->devices;
  EXPECT_THAT(devices[2].edits.hooks,
              ElementsAre(devices[0].edits.hooks.at(0), devices[1].edits.hooks.at(0)));
}

TEST_F(BuildTest, GraphicsSlicesGetTheirGpusDrmNodes) {
  FillA100Mig(node_);
  node_.inventory.gpus[1].mig[0].nvml.gpu_instance_profile = 10;
  Built built = Run();
  const Device* mig = built.Find("gpu")->Find(node_.inventory.gpus[1].mig[0].nvml.uuid);
  ASSERT_NE(mig, nullptr);
  EXPECT_THAT(mig->edits.device_nodes, Contains(Field(&DeviceNode::path, "/dev/dri/card2")));
  EXPECT_EQ(mig->edits.hooks.size(), 1U);
}

// The usual folders of X come before those below a second library folder.
TEST_F(BuildTest, TheFirstXorgModuleInNvidiasOrderIsTaken) {
  FillEightH100(node_);
  node_.files.File("/usr/lib64/libnvidia-more.so.550.54.15", ElfFile("libnvidia-more.so.1"));
  const std::vector<std::string> folders = {
      "/usr/lib64/xorg/modules/drivers", "/usr/lib/xorg/modules/drivers",
      "/usr/lib/x86_64-linux-gnu/nvidia/xorg", "/usr/lib/x86_64-linux-gnu/xorg/modules/drivers"};
  for (auto last = folders.rbegin(); last != folders.rend(); ++last) {
    const std::string path = *last + "/nvidia_drv.so";
    node_.files.File(path);
    const Built built = Run();
    std::vector<std::string> found;
    for (const Mount& mount : built.Find("gpu")->edits.mounts) {
      if (mount.container_path.ends_with("nvidia_drv.so")) found.push_back(mount.container_path);
    }
    EXPECT_THAT(found, ElementsAre(path));
  }
}

// What a name of GBM's library leads to may be another's: links are in the order in which files are
// found.
TEST_F(BuildTest, GraphicsLinksAreInTheOrderOfFiles) {
  FillEightH100(node_);
  const std::string folder = "/usr/lib/x86_64-linux-gnu";
  const std::string producer = "libnvidia-vulkan-producer.so.550.54.15";
  node_.files.File(fmt::format("{}/{}", folder, producer));
  node_.files.Link(folder + "/libnvidia-egl-gbm.so.9.9", producer);
  const Built built = Run();
  const std::vector<std::string>& args = built.Find("gpu")->edits.hooks.at(0).args;
  ASSERT_GE(args.size(), 7U);
  EXPECT_EQ(args[4], fmt::format("{}::{}/libnvidia-vulkan-producer.so", producer, folder));
  EXPECT_EQ(args[6], fmt::format("../libnvidia-allocator.so.1::{}/gbm/nvidia-drm_gbm.so", folder));
}

TEST_F(BuildTest, AByPathLinkToAnotherGpusNodeIsNotTaken) {
  FillA100Mig(node_);
  std::filesystem::remove(node_.files.Path("/dev/dri/by-path/pci-0000:07:00.0-card"));
  node_.files.Link("/dev/dri/by-path/pci-0000:07:00.0-card", "../card2");
  Built built = Run();
  EXPECT_THAT(built.Find("gpu")->Find(node_.inventory.gpus[0].uuid())->edits.hooks[0].args,
              Not(Contains(HasSubstr("card2"))));
}

TEST_F(BuildTest, TheDevRootIsHonouredAlsoWhereTheDriverRootHasNodes) {
  FillEightH100(node_);
  options_.driver_root = "/run/nvidia/driver";
  Built built = Run();
  EXPECT_EQ(built.Find("gpu")->devices[0].edits.device_nodes[0].host_path, "");
  EXPECT_THAT(built.Find("gpu")->edits.mounts,
              Each(Field(&Mount::host_path, testing::StartsWith("/run/nvidia/driver/"))));
}

// What a runtime follows on the host must stay in the driver's root too.
TEST_F(BuildTest, MountsBehindLinksThatLeaveADriverContainerAreOfTheRealFile) {
  FillEightH100(node_);
  const auto mount_of = [&](std::string_view container_path) {
    Built built = Run();
    for (const Mount& mount : built.Find("gpu")->edits.mounts) {
      if (mount.container_path == container_path) return mount.host_path;
    }
    return std::string();
  };
  std::filesystem::remove(node_.files.Path("/usr/bin/nvidia-smi"));
  node_.files.Program("/opt/alternatives/smi");
  node_.files.Link("/usr/bin/nvidia-smi", "/opt/alternatives/smi");
  EXPECT_EQ(mount_of("/usr/bin/nvidia-smi"), "/usr/bin/nvidia-smi");
  options_.driver_root = "/run/nvidia/driver";
  EXPECT_EQ(mount_of("/usr/bin/nvidia-smi"), "/run/nvidia/driver/opt/alternatives/smi");
}

TEST_F(BuildTest, NodesAreLookedForOnTheHostWhereTheDriverRootHasNone) {
  FillEightH100(node_);
  FakeNode driver;
  AddDriver(driver, "550.54.15");
  Built built = Build(options_, node_.inventory, driver.fs(), node_.files.fs());
  EXPECT_EQ(Names(built).size(), 8U);
}

TEST_F(BuildTest, ExtraClassesWithNothingAreDroppedWithOneWarningEach) {
  options_.gds = options_.mofed = options_.gdrcopy = true;
  Built built = Run();
  EXPECT_THAT(built.dropped, ElementsAre("gdrcopy", "gds", "mofed"));
  EXPECT_EQ(built.warnings.size(), 3U);
  EXPECT_THAT(built.ExtraNames(), IsEmpty());
}

TEST_F(BuildTest, GdsFilesAloneAreNoGds) {
  node_.files.File("/etc/cufile.json");
  options_.gds = true;
  EXPECT_THAT(Run().dropped, ElementsAre("gds"));
}

TEST_F(BuildTest, AMissingImexChannelIsAWarningUnlessRequired) {
  options_.imex_channels = {0};
  Built optional = Run();
  EXPECT_EQ(optional.imex_trouble, "");
  EXPECT_THAT(optional.warnings, ElementsAre(HasSubstr("IMEX channel 0")));
  options_.imex_required = true;
  Built required = Run();
  EXPECT_THAT(required.imex_trouble, HasSubstr("IMEX channel 0"));
  EXPECT_THAT(required.dropped, ElementsAre("imex-channel"));
}

TEST_F(BuildTest, TegraIsKnownByItsOneId) {
  FillTegra(node_);
  EXPECT_THAT(Names(Run()), ElementsAre("tegra"));
}

// As upstream: `*` in any part of a path of any type, and devices by their names in /dev.
TEST_F(BuildTest, TegraEntriesMayBePatterns) {
  FillTegra(node_);
  const std::string csv = "/etc/nvidia-container-runtime/host-files-for-container.d/";
  node_.files.Folder("/dev/dri");
  node_.files.File(csv + "devices.csv", "dev, nvmap\ndev, /dev/*/card*\n");
  node_.files.File(csv + "drivers.csv",
                   "lib, /usr/lib/*/nvidia/*.so.1.1\nsym, /usr/lib/*/libcuda.so\n"
                   "sym, /usr/lib/aarch64-linux-gnu/nvi*\ndir, /usr/*/vulkan\n");
  const Built built = Run();
  const Spec* spec = built.Find("gpu");
  ASSERT_NE(spec, nullptr);
  EXPECT_THAT(spec->devices.at(0).edits.device_nodes,
              ElementsAre(Field(&DeviceNode::path, "/dev/nvmap"),
                          Field(&DeviceNode::path, "/dev/dri/card0")));
  EXPECT_THAT(spec->edits.mounts,
              ElementsAre(Field(&Mount::container_path, "/etc/nv_tegra_release"),
                          Field(&Mount::container_path, "/usr/share/vulkan"),
                          Field(&Mount::container_path,
                                "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1")));
  EXPECT_THAT(spec->edits.hooks.at(1).args,
              testing::Contains("nvidia/libcuda.so::/usr/lib/aarch64-linux-gnu/libcuda.so"));
}

TEST_F(BuildTest, TegraWithoutCsvFilesSaysWhatIsMissing) {
  node_.inventory.platform = inventory::Platform::kTegra;
  EXPECT_THAT(Run().gpu_trouble, HasSubstr("host-files-for-container.d"));
}

TEST_F(BuildTest, WslWithoutAStoreOrDxgSaysSo) {
  node_.inventory.platform = inventory::Platform::kWsl;
  EXPECT_THAT(Run().gpu_trouble, HasSubstr("libcuda.so.1.1"));
  node_.files.File("/usr/lib/wsl/drivers/nv/libcuda.so.1.1");
  EXPECT_THAT(Run().gpu_trouble, HasSubstr("/dev/dxg"));
}

TEST_F(BuildTest, EntriesThatPodsHoldStay) {
  FillEightH100(node_);
  const Spec before = *Run().Find("gpu");
  const std::string gone = node_.inventory.gpus[7].uuid();
  node_.inventory.gpus.pop_back();
  Spec after = *Run().Find("gpu");
  KeepHeld(after, before, {gone, "GPU-never-was"});
  EXPECT_EQ(ToJson(after), ToJson(before));
}

TEST_F(BuildTest, TheSameMachineGivesTheSameBytes) {
  FillA100Mig(node_);
  EXPECT_EQ(ToJson(*Run().Find("gpu")), ToJson(*Run().Find("gpu")));
}

TEST(PresentExtrasTest, NodesOfWhatIsAskedForAlone) {
  CdiNode node;
  node.files.Device("/dev/gdrdrv", 235, 0);
  node.files.Device("/dev/nvidia-fs0", 499, 0);
  Options options;
  options.gds = true;
  options.imex_channels = {0};
  EXPECT_THAT(PresentExtras(options, node.files.fs(), node.files.fs()),
              testing::ElementsAre("/dev/nvidia-fs0"));
  node.files.Device("/dev/nvidia-caps-imex-channels/channel0", 237, 0);
  EXPECT_THAT(PresentExtras(options, node.files.fs(), node.files.fs()),
              testing::ElementsAre("/dev/nvidia-caps-imex-channels/channel0", "/dev/nvidia-fs0"));
}

}  // namespace
}  // namespace ndp::cdi
