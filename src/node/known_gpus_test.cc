#include "node/known_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::node {
namespace {
using testing::HasSubstr;

inventory::Inventory With(const std::vector<std::string>& uuids) {
  inventory::Inventory inventory;
  for (const std::string& uuid : uuids) {
    inventory::Gpu gpu;
    gpu.nvml.index = static_cast<unsigned>(inventory.gpus.size());
    gpu.nvml.uuid = uuid;
    inventory.gpus.push_back(gpu);
  }
  return inventory;
}

TEST(KeepVanishedTest, AVanishedGpuStaysWithAReason) {
  const auto merged = KeepVanished(With({"GPU-a", "GPU-b"}), With({"GPU-a"}));
  ASSERT_EQ(merged.gpus.size(), 2U);
  EXPECT_EQ(merged.FindUuid("GPU-a")->trouble, "");
  EXPECT_THAT(merged.FindUuid("GPU-b")->trouble, HasSubstr("does not list it any more"));
}

TEST(KeepVanishedTest, TheDriversWordsAreTheReasonWhereThereAreAny) {
  auto fresh = With({"GPU-a"});
  fresh.broken.push_back({.index = 1, .reason = "nvmlDeviceGetUUID: GPU is lost (15)"});
  const auto merged = KeepVanished(With({"GPU-a", "GPU-b"}), fresh);
  EXPECT_EQ(merged.FindUuid("GPU-b")->trouble, "lost: nvmlDeviceGetUUID: GPU is lost (15)");
}

TEST(KeepVanishedTest, ItsMigDevicesGoWithIt) {
  auto before = With({"GPU-a"});
  before.gpus[0].mig.emplace_back();
  const auto merged = KeepVanished(before, With({}));
  EXPECT_NE(merged.gpus.at(0).mig.at(0).trouble, "");
}

// The file in /sys goes before NVML knows: a list with another topology would be no news.
TEST(KeepVanishedTest, AGpusNumaNodeOutlivesItsFile) {
  auto before = With({"GPU-a"});
  before.gpus[0].numa_node = 1;
  EXPECT_EQ(KeepVanished(before, With({"GPU-a"})).gpus[0].numa_node, 1);
}

TEST(KeepVanishedTest, AGpuThatReturnsIsAsGoodAsNew) {
  const auto lost = KeepVanished(With({"GPU-a", "GPU-b"}), With({"GPU-a"}));
  const auto back = KeepVanished(lost, With({"GPU-a", "GPU-b"}));
  ASSERT_EQ(back.gpus.size(), 2U);
  EXPECT_EQ(back.FindUuid("GPU-b")->trouble, "");
}

}  // namespace
}  // namespace ndp::node
