#include "sim_root/host_files.h"

#include <unistd.h>

#include <memory>

#include "sim_root/files.h"
#include "sim_state/machine.h"
#include "testing/result_matchers.h"

namespace ndp::sim_root {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class HostFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ndp-sim-host-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
    control_->gpu_count = 1;
    sim_state::Gpu& gpu = control_->gpus[0];
    gpu.present = 1;
    gpu.pci = {.domain = 0, .bus = 0x1B, .device = 0};
    gpu.pci_id = 0x233010DE;
    gpu.numa_node = 1;
    gpu.mig_model = 0;
    sim_state::SetText(control_->driver_version, "570.86.15");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Read(const char* path) {
    auto text = ReadFile(root_ / path);
    return text.ok() ? *text : "absent";
  }

  fs::path root_;
  std::unique_ptr<sim_state::Control> control_ = std::make_unique<sim_state::Control>();
};

TEST_F(HostFilesTest, SysfsTellsNumaNodeClassAndIds) {
  ASSERT_THAT(WriteHostFiles(root_, *control_), IsOk());
  EXPECT_EQ(Read("sys/bus/pci/devices/0000:1b:00.0/numa_node"), "1\n");
  EXPECT_EQ(Read("sys/bus/pci/devices/0000:1b:00.0/class"), "0x030200\n");
  EXPECT_EQ(Read("sys/bus/pci/devices/0000:1b:00.0/vendor"), "0x10de\n");
  EXPECT_EQ(Read("sys/bus/pci/devices/0000:1b:00.0/device"), "0x2330\n");
  EXPECT_THAT(Read("sys/bus/pci/devices/0000:1b:00.0/config"), StartsWith("\xDE\x10\x30\x23"));
  EXPECT_TRUE(fs::is_directory(root_ / "sys/bus/pci/devices/0000:1b:00.0/drm/renderD128"));
  EXPECT_EQ(fs::read_symlink(root_ / "dev/dri/by-path/pci-0000:1b:00.0-card"), "../card1");
}

TEST_F(HostFilesTest, MigMinorsListEveryPossibleInstance) {
  ASSERT_THAT(WriteHostFiles(root_, *control_), IsOk());
  const std::string minors = Read("proc/driver/nvidia-caps/mig-minors");
  EXPECT_THAT(minors,
              StartsWith("config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\n"));
  EXPECT_THAT(minors, HasSubstr("gpu0/gi14/ci7/access 137\n"));
}

TEST_F(HostFilesTest, CapabilityFoldersComeAndGoWithInstances) {
  control_->gpus[0].mig.instances[0] = {.used = 1, .id = 7};
  control_->gpus[0].mig.devices[0] = {.used = 1, .gi_id = 7, .ci_id = 0};
  ASSERT_THAT(WriteHostFiles(root_, *control_), IsOk());
  const fs::path mig = root_ / "proc/driver/nvidia/capabilities/gpu0/mig";
  EXPECT_THAT(Read("proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access"),
              HasSubstr("DeviceFileMinor: 67\n"));
  control_->gpus[0].mig = {};
  ASSERT_THAT(WriteHostFiles(root_, *control_), IsOk());
  EXPECT_FALSE(fs::exists(mig / "gi7"));
  EXPECT_TRUE(fs::exists(mig));
}

TEST_F(HostFilesTest, WithoutADriverOnlyTheHardwareIsLeft) {
  ASSERT_THAT(WriteHostFiles(root_, *control_), IsOk());
  EXPECT_THAT(Read("proc/devices"), HasSubstr("195 nvidia\n"));
  control_->driver_present = 0;
  ASSERT_THAT(WriteHostFiles(root_, *control_), IsOk());
  EXPECT_FALSE(fs::exists(root_ / "proc/driver/nvidia"));
  EXPECT_FALSE(fs::exists(root_ / "sys/module/nvidia"));
  EXPECT_TRUE(fs::exists(root_ / "sys/bus/pci/devices/0000:1b:00.0"));
}

TEST_F(HostFilesTest, AReloadedModuleIsANewFolder) {
  ASSERT_THAT(WriteHostFiles(root_, *control_), IsOk());
  const auto before = fs::last_write_time(root_ / "sys/module/nvidia");
  const fs::path keep = root_ / "sys/module/nvidia/marker";
  ASSERT_THAT(WriteFile(keep, "x"), IsOk());
  ASSERT_THAT(RemakeModuleFolder(root_, *control_), IsOk());
  EXPECT_FALSE(fs::exists(keep));
  EXPECT_GE(fs::last_write_time(root_ / "sys/module/nvidia"), before);
}

}  // namespace
}  // namespace ndp::sim_root
