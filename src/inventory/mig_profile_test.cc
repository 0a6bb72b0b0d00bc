#include "inventory/mig_profile.h"

#include <gtest/gtest.h>

namespace ndp::inventory {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

std::string Name(unsigned gi, unsigned ci, std::uint64_t mib, std::uint64_t total_mib,
                 std::optional<unsigned> number = 0) {
  nvml::MigDevice device;
  device.gpu_instance_profile = number;
  device.attributes = nvml::MigAttributes{
      .gpu_instance_slices = gi, .compute_instance_slices = ci, .memory_mib = mib};
  return MigProfileName(device, total_mib * kMiB);
}

TEST(MigProfileNameTest, A100WithFortyGigabytes) {
  EXPECT_EQ(Name(1, 1, 4864, 40960), "1g.5gb");
  EXPECT_EQ(Name(1, 1, 9856, 40960, 9), "1g.10gb");
  EXPECT_EQ(Name(2, 2, 9856, 40960), "2g.10gb");
  EXPECT_EQ(Name(3, 3, 19968, 40960), "3g.20gb");
  EXPECT_EQ(Name(7, 7, 40192, 40960), "7g.40gb");
}

TEST(MigProfileNameTest, ComputeSlicesComeFirstWhereTheyDiffer) {
  EXPECT_EQ(Name(2, 1, 9856, 40960), "1c.2g.10gb");
}

TEST(MigProfileNameTest, AttributeFollowsTheProfileNumber) {
  EXPECT_EQ(Name(1, 1, 4864, 40960, 7), "1g.5gb+me");
  EXPECT_EQ(Name(1, 1, 9728, 81559, 15), "1g.10gb+me.all");
  EXPECT_EQ(Name(1, 1, 9728, 81559, 10), "1g.10gb+gfx");
  EXPECT_EQ(Name(1, 1, 9728, 81559, 13), "1g.10gb-me");
  EXPECT_EQ(Name(1, 1, 4864, 40960, std::nullopt), "1g.5gb");
}

TEST(MigProfileNameTest, IsEmptyWithoutAttributes) {
  EXPECT_EQ(MigProfileName({}, 40960 * kMiB), "");
  EXPECT_EQ(Name(1, 1, 4864, 0), "");
}

}  // namespace
}  // namespace ndp::inventory
