#include "inventory/discover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ndp::inventory {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

class AssembleTest : public testing::Test {
 protected:
  AssembleTest()
      : root_(fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~AssembleTest() override { fs::remove_all(root_); }

  void File(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Inventory Run(const Scan& scan) { return Assemble(Platform::kNvml, scan, os::HostFs(root_)); }

  fs::path root_;
};

nvml::Gpu GpuAt(unsigned index, const std::string& pci) {
  nvml::Gpu gpu;
  gpu.index = index;
  gpu.minor = index;
  gpu.uuid = "GPU-" + std::to_string(index);
  gpu.pci_bus_id = pci;
  gpu.memory_bytes = 40960ULL << 20;
  return gpu;
}

nvml::Gpu MigGpu(unsigned gi) {
  nvml::Gpu gpu = GpuAt(0, "0000:07:00.0");
  gpu.minor = 5;  // the caps go by minor, not by index
  gpu.mig_mode = nvml::MigMode{.current = true, .pending = true};
  nvml::MigDevice mig;
  mig.uuid = "MIG-1";
  mig.gpu_instance = gi;
  mig.attributes = nvml::MigAttributes{
      .gpu_instance_slices = 1, .compute_instance_slices = 1, .memory_mib = 4864};
  gpu.mig_devices = {mig};
  return gpu;
}

TEST_F(AssembleTest, AMinorThatNvmlDoesNotTellIsTheKernelModules) {
  File("proc/driver/nvidia/gpus/0000:07:00.0/information",
       "Model: \t\t NVIDIA H100\nDevice Minor: \t 6\nGPU Excluded:\t No\n");
  nvml::Gpu told = GpuAt(0, "0000:07:00.0");
  told.minor.reset();
  nvml::Gpu untold = GpuAt(1, "0000:0b:00.0");
  untold.minor.reset();
  const Inventory inventory = Run({.driver = {}, .gpus = {told, untold}});
  EXPECT_EQ(inventory.gpus[0].nvml.minor, 6U);
  EXPECT_THAT(inventory.gpus[0].device_nodes, ElementsAre("/dev/nvidia6"));
  EXPECT_EQ(inventory.gpus[1].nvml.minor, std::nullopt);
  EXPECT_THAT(inventory.gpus[1].device_nodes, IsEmpty());
  EXPECT_EQ(inventory.gpus[1].trouble, "");
}

TEST_F(AssembleTest, NumaNodeZeroIsANodeAndMinusOneIsNone) {
  File("sys/bus/pci/devices/0000:07:00.0/numa_node", "0\n");
  File("sys/bus/pci/devices/0000:0b:00.0/numa_node", "-1\n");
  const Inventory inventory =
      Run({.driver = {},
           .gpus = {GpuAt(0, "0000:07:00.0"), GpuAt(1, "0000:0b:00.0"), GpuAt(2, "0000:0c:00.0")}});
  EXPECT_EQ(inventory.gpus.at(0).numa_node, 0);
  EXPECT_EQ(inventory.gpus.at(1).numa_node, std::nullopt);
  EXPECT_EQ(inventory.gpus.at(2).numa_node, std::nullopt);
}

TEST_F(AssembleTest, OneGpuThatErrorsHidesNoOther) {
  const Inventory inventory =
      Run({.driver = {},
           .gpus = {
               std::unexpected(nvml::Failure{nvml::kGpuIsLost, "nvmlDeviceGetUUID", "GPU is lost"}),
               GpuAt(1, "0000:0b:00.0")}});
  ASSERT_EQ(inventory.gpus.size(), 1U);
  EXPECT_EQ(inventory.gpus[0].index(), 1U);
  ASSERT_EQ(inventory.broken.size(), 1U);
  EXPECT_EQ(inventory.broken[0].reason, "nvmlDeviceGetUUID: GPU is lost (15)");
}

TEST_F(AssembleTest, DisplayGpusAreLeftOut) {
  nvml::Gpu display = GpuAt(0, "0000:07:00.0");
  display.name = "NVIDIA DGX Display";
  EXPECT_TRUE(Run({.driver = {}, .gpus = {display}}).gpus.empty());
}

TEST_F(AssembleTest, MigDevicesGetTheirThreeNodes) {
  File("proc/driver/nvidia-caps/mig-minors", "gpu5/gi2/access 66\ngpu5/gi2/ci0/access 67\n");
  const Inventory inventory = Run({.driver = {}, .gpus = {MigGpu(2)}});
  const MigDevice& mig = inventory.gpus.at(0).mig.at(0);
  EXPECT_EQ(mig.profile, "1g.5gb");
  EXPECT_EQ(mig.trouble, "");
  EXPECT_THAT(mig.device_nodes, ElementsAre("/dev/nvidia5", "/dev/nvidia-caps/nvidia-cap66",
                                            "/dev/nvidia-caps/nvidia-cap67"));
}

TEST_F(AssembleTest, AMissingCapEntryIsThatDevicesTroubleAlone) {
  File("proc/driver/nvidia-caps/mig-minors", "gpu5/gi2/access 66\ngpu5/gi2/ci0/access 67\n");
  const Inventory inventory = Run({.driver = {}, .gpus = {MigGpu(3)}});
  EXPECT_THAT(inventory.gpus.at(0).mig.at(0).trouble, HasSubstr("no entry gpu5/gi3/access"));
  EXPECT_EQ(inventory.gpus.at(0).trouble, "");
}

}  // namespace
}  // namespace ndp::inventory
