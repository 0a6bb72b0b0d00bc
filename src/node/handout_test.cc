#include "node/handout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "testing/cdi_nodes.h"
#include "testing/temp_dir.h"

namespace ndp::node {
namespace {

using config::DeviceListStrategy;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class HandoutTest : public testing::Test {
 protected:
  HandoutTest() {
    FillEightH100(node_);
    settings_.cdi.spec_dir = (temp_ / "cdi").string();
    settings_.common.driver_root = "/";
    settings_.common.dev_root = "/";
    Use({DeviceListStrategy::kEnvvar});
  }

  void Use(std::set<DeviceListStrategy> strategies) {
    settings_.plugin.device_list_strategies = std::move(strategies);
  }
  Handout::Answer Prepare() {
    return handout_.Prepare(settings_, std::make_shared<inventory::Inventory>(node_.inventory),
                            held_);
  }
  std::string Uuid(int gpu) const {
    return node_.inventory.gpus[static_cast<std::size_t>(gpu)].uuid();
  }

  // What the GPUs' file defines.
  std::set<std::string> OnDisk() const {
    std::set<std::string> names;
    const auto spec = cdi::SpecDir(settings_.cdi.spec_dir).Read("k8s.device-plugin.nvidia.com/gpu");
    if (!spec) return names;
    for (const cdi::Device& device : spec->devices) names.insert(device.name);
    return names;
  }

  TempDir temp_;
  CdiNode node_;
  config::Settings settings_;
  plugin::HeldDevices held_;
  ManualClock clock_;
  log::RateLimit limit_{clock_};
  Handout handout_{node_.files.fs(), node_.files.fs(), node_.files.fs(), limit_};
};

TEST_F(HandoutTest, ControlNodesAreThoseThatExist) {
  node_.files.RemoveDevice("/dev/nvidia-modeset");
  EXPECT_THAT(Prepare().control_nodes,
              ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"));
}

TEST_F(HandoutTest, AMissingNodeIsTroubleWhereNodesAreHandedOut) {
  node_.files.RemoveDevice("/dev/nvidia3");
  EXPECT_THAT(Prepare().device_trouble, IsEmpty()) << "the runtime finds it by its id";

  settings_.plugin.pass_device_specs = true;
  const Handout::Answer answer = Prepare();
  ASSERT_EQ(answer.device_trouble.size(), 1U);
  EXPECT_THAT(answer.device_trouble.at(Uuid(3)),
              testing::AllOf(HasSubstr("/dev/nvidia3"), HasSubstr("--pass-device-specs")));
  EXPECT_EQ(answer.trouble, "");

  node_.files.Device("/dev/nvidia3", 195, 3);
  EXPECT_THAT(Prepare().device_trouble, IsEmpty());
}

TEST_F(HandoutTest, AMissingCapNodeIsTroubleOfItsMigDeviceAlone) {
  CdiNode mig;
  FillA100Mig(mig);
  const auto& devices = mig.inventory.gpus[1].mig;
  ASSERT_GE(devices.size(), 2U);
  mig.files.RemoveDevice(devices[0].device_nodes[2]);
  settings_.plugin.pass_device_specs = true;
  Handout handout(mig.files.fs(), mig.files.fs(), mig.files.fs(), limit_);
  const auto answer =
      handout.Prepare(settings_, std::make_shared<inventory::Inventory>(mig.inventory), held_);
  ASSERT_EQ(answer.device_trouble.size(), 1U);
  EXPECT_THAT(answer.device_trouble.at(devices[0].nvml.uuid),
              HasSubstr(devices[0].device_nodes[2]));
}

TEST_F(HandoutTest, AFolderWithoutAnyOfTheDriversNodesSaysNothingOfTheHost) {
  const TempDir empty;
  const os::HostFs devices(empty.path());
  settings_.plugin.pass_device_specs = true;
  Handout handout(node_.files.fs(), node_.files.fs(), devices, limit_);
  const auto answer =
      handout.Prepare(settings_, std::make_shared<inventory::Inventory>(node_.inventory), held_);
  EXPECT_THAT(answer.device_trouble, IsEmpty());
  EXPECT_THAT(answer.control_nodes, IsEmpty());
}

TEST_F(HandoutTest, ARequiredChannelThatIsMissingIsTroubleOfAll) {
  settings_.imex.channel_ids = {0};
  EXPECT_EQ(Prepare().trouble, "");
  EXPECT_THAT(Prepare().warnings, ElementsAre(HasSubstr("IMEX channel 0")));
  settings_.imex.required = true;
  EXPECT_THAT(Prepare().trouble, HasSubstr("channel0"));
  node_.files.Device("/dev/nvidia-caps-imex-channels/channel0", 237, 0);
  const Handout::Answer answer = Prepare();
  EXPECT_EQ(answer.trouble, "");
  EXPECT_THAT(answer.imex_channels, ElementsAre(0));
}

TEST_F(HandoutTest, CdiFilesAreWrittenOnceAndAgainWhenTheyAreGone) {
  Use({DeviceListStrategy::kCdiCri});
  const std::filesystem::path file =
      std::filesystem::path(settings_.cdi.spec_dir) / "k8s.device-plugin.nvidia.com-gpu.json";
  const auto inventory = std::make_shared<inventory::Inventory>(node_.inventory);
  EXPECT_EQ(handout_.Prepare(settings_, inventory, held_).trouble, "");
  ASSERT_TRUE(std::filesystem::exists(file));
  const auto written = std::filesystem::last_write_time(file);
  handout_.Prepare(settings_, inventory, held_);
  EXPECT_EQ(std::filesystem::last_write_time(file), written);
  std::filesystem::remove(file);
  handout_.Prepare(settings_, inventory, held_);
  EXPECT_TRUE(std::filesystem::exists(file));
}

// As in a rollout of another --device-id-strategy: whoever writes later keeps what the other has.
TEST_F(HandoutTest, TwoInstancesWithDifferentNamesLeaveEachOtherTheirs) {
  Use({DeviceListStrategy::kCdiCri});
  config::Settings by_index = settings_;
  by_index.plugin.device_id_strategy = config::DeviceIdStrategy::kIndex;
  const auto inventory = std::make_shared<inventory::Inventory>(node_.inventory);
  Handout second(node_.files.fs(), node_.files.fs(), node_.files.fs(), limit_);
  const auto prepare = [&] {
    EXPECT_EQ(handout_.Prepare(settings_, inventory, held_).trouble, "");
    EXPECT_EQ(second.Prepare(by_index, inventory, held_).trouble, "");
  };
  testing::internal::CaptureStderr();
  prepare();
  EXPECT_THAT(OnDisk(), testing::Contains("0")) << "it did not know of the first";
  EXPECT_THAT(OnDisk(), testing::Not(testing::Contains(Uuid(0))));
  prepare();
  EXPECT_EQ(OnDisk().size(), 16U);
  EXPECT_THAT(OnDisk(), testing::IsSupersetOf({std::string("0"), Uuid(0)}));
  const cdi::SpecDir dir(settings_.cdi.spec_dir);
  const auto file = os::Identify(dir.FileOf("k8s.device-plugin.nvidia.com/gpu"));
  // Also where one of them looks at everything again.
  prepare();
  handout_.Forget();
  prepare();
  second.Forget();
  prepare();
  EXPECT_EQ(*os::Identify(dir.FileOf("k8s.device-plugin.nvidia.com/gpu")), *file);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 3) << log;  // replaced, and once each of the other
}

// What the other instance hands out resolves all the while.
TEST_F(HandoutTest, AStartBesideAnotherInstanceTakesNothingFromIt) {
  Use({DeviceListStrategy::kCdiCri});
  node_.files.Device("/dev/gdrdrv", 235, 0);
  settings_.plugin.gdrcopy_enabled = true;
  Prepare();
  settings_.plugin.gdrcopy_enabled = false;
  settings_.plugin.device_id_strategy = config::DeviceIdStrategy::kIndex;
  const auto inventory = std::make_shared<inventory::Inventory>(node_.inventory);
  const cdi::SpecDir dir(settings_.cdi.spec_dir);
  Handout beside(node_.files.fs(), node_.files.fs(), node_.files.fs(), limit_);
  beside.set_another_serves(true);
  beside.Prepare(settings_, inventory, held_);
  EXPECT_THAT(OnDisk(), testing::IsSupersetOf({std::string("0"), Uuid(0)}));
  EXPECT_TRUE(dir.Read("k8s.device-plugin.nvidia.com/gdrcopy"));

  Handout alone(node_.files.fs(), node_.files.fs(), node_.files.fs(), limit_);
  alone.Prepare(settings_, inventory, held_);
  EXPECT_EQ(OnDisk().size(), 8U);
  EXPECT_FALSE(dir.Read("k8s.device-plugin.nvidia.com/gdrcopy"));
}

TEST_F(HandoutTest, AnOwnFileThatStaysIsNotTakenForAnothersOne) {
  Use({DeviceListStrategy::kCdiCri});
  node_.files.Device("/dev/gdrdrv", 235, 0);
  settings_.plugin.gdrcopy_enabled = true;
  Prepare();
  settings_.plugin.gdrcopy_enabled = false;  // by a reload
  testing::internal::CaptureStderr();
  Prepare();
  Prepare();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(std::filesystem::exists(temp_ / "cdi/k8s.device-plugin.nvidia.com-gdrcopy.json"));
}

TEST_F(HandoutTest, AFileThatWasSpoiltIsMadeAnew) {
  Use({DeviceListStrategy::kCdiCri});
  const auto inventory = std::make_shared<inventory::Inventory>(node_.inventory);
  handout_.Prepare(settings_, inventory, held_);
  temp_.Write("cdi/k8s.device-plugin.nvidia.com-gpu.json", "{");
  EXPECT_EQ(handout_.Prepare(settings_, inventory, held_).trouble, "");
  EXPECT_EQ(OnDisk().size(), 8U);
  temp_.Write("cdi/k8s.device-plugin.nvidia.com-gpu.json", R"({"kind": "example.org/gpu"})");
  EXPECT_THAT(handout_.Prepare(settings_, inventory, held_).trouble, HasSubstr("example.org/gpu"));
}

// Somebody who cleans the folder, a folder that comes and goes: the files are made again each time,
// and told of within limits. What the log does not have is left for others to tell.
TEST_F(HandoutTest, AFolderThatFlapsIsNoFloodOfLines) {
  Use({DeviceListStrategy::kCdiCri});
  const std::filesystem::path folder = settings_.cdi.spec_dir;
  const auto inventory = std::make_shared<inventory::Inventory>(node_.inventory);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(handout_.Prepare(settings_, inventory, held_).trouble, "");
    std::filesystem::remove_all(folder);
    EXPECT_EQ(handout_.Prepare(settings_, inventory, held_).trouble, "");
    std::filesystem::remove_all(folder);
    temp_.Write("cdi", "in the way");
    const Handout::Answer answer = handout_.Prepare(settings_, inventory, held_);
    EXPECT_THAT(answer.trouble, HasSubstr("cdi"));
    EXPECT_EQ(answer.told.contains(answer.trouble), i < 10);
    std::filesystem::remove(folder);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 20) << log;
}

TEST_F(HandoutTest, AFolderThatCannotBeWrittenCostsAllOrTheCdiNamesAlone) {
  temp_.Write("cdi", "a file where the folder should be");
  Use({DeviceListStrategy::kCdiCri});
  EXPECT_THAT(Prepare().trouble, HasSubstr("cdi"));
  Use({DeviceListStrategy::kCdiCri, DeviceListStrategy::kEnvvar});
  const Handout::Answer answer = Prepare();
  EXPECT_EQ(answer.trouble, "");
  EXPECT_TRUE(answer.all_without_cdi);
}

}  // namespace
}  // namespace ndp::node
