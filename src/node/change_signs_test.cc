#include "node/change_signs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ndp::node {
namespace {
namespace fs = std::filesystem;

class ChangeSignsTest : public testing::Test {
 protected:
  ChangeSignsTest()
      : root_(fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0");
    fs::create_directories(root_ / "proc/driver/nvidia-caps");
    fs::create_directories(root_ / "dev");
    std::ofstream(root_ / "lib.so") << "1";
    before_ = Read();
  }
  ~ChangeSignsTest() override { fs::remove_all(root_); }

  ChangeSigns Read() {
    return ReadChangeSigns(os::HostFs(root_), os::HostFs(root_), root_ / "lib.so");
  }

  fs::path root_;
  ChangeSigns before_;
};

TEST_F(ChangeSignsTest, NothingChanged) { EXPECT_EQ(before_.Difference(Read()), ""); }

TEST_F(ChangeSignsTest, ACiInstanceThatGoes) {
  fs::remove(root_ / "proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0");
  EXPECT_EQ(before_.Difference(Read()), "MIG instances");
}

TEST_F(ChangeSignsTest, AGpuInstanceThatComes) {
  fs::create_directories(root_ / "proc/driver/nvidia/capabilities/gpu0/mig/gi2");
  EXPECT_EQ(before_.Difference(Read()), "MIG instances");
}

TEST_F(ChangeSignsTest, MigMinors) {
  std::ofstream(root_ / "proc/driver/nvidia-caps/mig-minors") << "config 1\n";
  EXPECT_EQ(before_.Difference(Read()), "MIG minors");
}

TEST_F(ChangeSignsTest, DeviceNodesOfOursOnly) {
  std::ofstream(root_ / "dev/sda") << "";
  EXPECT_EQ(before_.Difference(Read()), "");
  std::ofstream(root_ / "dev/nvidia-uvm") << "";
  EXPECT_EQ(before_.Difference(Read()), "device nodes");
  EXPECT_TRUE(before_.SameGpus(Read()));
}

TEST_F(ChangeSignsTest, AGpuThatComesIsToldBeforeWhatComesWithIt) {
  std::ofstream(root_ / "dev/nvidia3") << "";
  fs::create_directories(root_ / "proc/driver/nvidia/capabilities/gpu3/mig");
  EXPECT_EQ(before_.Difference(Read()), "GPUs");
  EXPECT_FALSE(before_.SameGpus(Read()));
  const ChangeSigns with_node = Read();
  fs::create_directories(root_ / "proc/driver/nvidia/gpus/0000:1b:00.0");
  EXPECT_FALSE(with_node.SameGpus(Read()));
}

TEST_F(ChangeSignsTest, AReplacedLibrary) {
  std::ofstream(root_ / "new.so") << "2";
  fs::rename(root_ / "new.so", root_ / "lib.so");
  EXPECT_EQ(before_.Difference(Read()), "driver library");
}

}  // namespace
}  // namespace ndp::node
