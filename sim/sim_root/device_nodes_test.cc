#include "sim_root/device_nodes.h"

#include <unistd.h>

#include <memory>

#include "sim_root/files.h"
#include "testing/result_matchers.h"

namespace ndp::sim_root {
namespace {

using sim_state::Control;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class DeviceNodesTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ndp-sim-nodes-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
    control_->gpu_count = 2;
    for (unsigned i = 0; i < 2; ++i) {
      control_->order[i] = i;
      control_->gpus[i].minor = i;
      control_->gpus[i].present = 1;
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::filesystem::path root_;
  std::unique_ptr<Control> control_ = std::make_unique<Control>();
};

TEST_F(DeviceNodesTest, CapMinorsAreDistinctAcrossGpusAndInstances) {
  EXPECT_EQ(InstanceCapMinor(0, 0), 3U);
  EXPECT_EQ(InstanceCapMinor(1, 1), 147U);
  EXPECT_EQ(ComputeCapMinor(1, 1, 0), 148U);
  EXPECT_LT(ComputeCapMinor(0, 14, 7), InstanceCapMinor(1, 0));
}

TEST_F(DeviceNodesTest, EveryGpuAndInstanceHasItsNodes) {
  control_->gpus[1].mig.instances[0] = {.used = 1, .id = 1};
  control_->gpus[1].mig.devices[0] = {.used = 1, .gi_id = 1, .ci_id = 0};
  const auto nodes = NodesOf(*control_);
  EXPECT_THAT(nodes, Contains(Node{"/dev/nvidia1", 195, 1, 0666, 0}));
  EXPECT_THAT(nodes, Contains(Node{"/dev/nvidiactl", 195, 255, 0666, 0}));
  EXPECT_THAT(nodes, Contains(Node{"/dev/nvidia-caps/nvidia-cap147", 236, 147, 0444, 0}));
  EXPECT_THAT(nodes, Contains(Node{"/dev/nvidia-caps/nvidia-cap148", 236, 148, 0444, 0}));
}

TEST_F(DeviceNodesTest, NothingOfTheDriverIsLeftWhenItIsGone) {
  control_->driver_present = 0;
  EXPECT_TRUE(NodesOf(*control_).empty());
}

TEST_F(DeviceNodesTest, TheListNamesWhatThereIsAndOldNodesGo) {
  ASSERT_THAT(WriteNodes(root_, NodesOf(*control_)), IsOk());
  EXPECT_THAT(ReadFile(root_ / "dev.list"), IsOkAnd(HasSubstr("/dev/nvidia1 c 195 1 0666 0\n")));
  EXPECT_THAT(ReadFile(root_ / "dev.list"),
              IsOkAnd(HasSubstr("/dev/dri/renderD128 c 226 128 0660 109\n")));
  control_->gpu_count = 1;
  ASSERT_THAT(WriteNodes(root_, NodesOf(*control_)), IsOk());
  EXPECT_THAT(ReadFile(root_ / "dev.list"), IsOkAnd(Not(HasSubstr("/dev/nvidia1 "))));
  EXPECT_FALSE(std::filesystem::exists(root_ / "dev/nvidia1"));
  // Where nodes can be made, they are.
  if (geteuid() == 0 && std::filesystem::exists(root_ / "dev/nvidia0")) {
    EXPECT_TRUE(std::filesystem::is_character_file(root_ / "dev/nvidia0"));
  }
}

}  // namespace
}  // namespace ndp::sim_root
