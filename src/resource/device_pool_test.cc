#include "resource/device_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::resource {
namespace {

using ::testing::Eq;
using ::testing::Optional;

const DevicePool& SharedAndWhole() {
  static const DevicePool kPool({{.uuid = "GPU-c", .gpu = 0, .replicas = 3},
                                 {.uuid = "GPU-a", .gpu = 1},
                                 {.uuid = "GPU-b", .gpu = 2, .replicas = 12}});
  return kPool;
}

TEST(DevicePoolTest, SlotsFollowDeviceOrderThenReplica) {
  EXPECT_EQ(SharedAndWhole().size(), 16U);
  EXPECT_THAT(SharedAndWhole().Find("GPU-c::0"), Optional(0U));
  EXPECT_THAT(SharedAndWhole().Find("GPU-c::2"), Optional(2U));
  EXPECT_THAT(SharedAndWhole().Find("GPU-a"), Optional(3U));
  EXPECT_THAT(SharedAndWhole().Find("GPU-b::11"), Optional(15U));
}

TEST(DevicePoolTest, EverySlotsIdLeadsBackToIt) {
  for (std::uint32_t slot = 0; slot < SharedAndWhole().size(); ++slot) {
    EXPECT_THAT(SharedAndWhole().Find(SharedAndWhole().Id(slot)), Optional(slot));
  }
}

TEST(DevicePoolTest, OnlyExactIdsAreFound) {
  for (const char* id : {"", "GPU-", "GPU-c", "GPU-c::3", "GPU-c::-1", "GPU-c::01", "GPU-c::",
                         "GPU-c::x", "GPU-a::0", "GPU-z", "GPU-b::99999999999999999999"}) {
    EXPECT_THAT(SharedAndWhole().Find(id), Eq(std::nullopt)) << id;
  }
}

TEST(DevicePoolTest, IdsAreOpaqueText) {
  const DevicePool pool({{.uuid = "odd::7"}, {.uuid = "tegra"}, {.uuid = "odd::x", .replicas = 2}});
  EXPECT_THAT(pool.Find("odd::7"), Optional(0U));
  EXPECT_THAT(pool.Find("tegra"), Optional(1U));
  EXPECT_THAT(pool.Find("odd::x::1"), Optional(3U));
}

TEST(DevicePoolTest, SharedOrMigIsNotExclusive) {
  EXPECT_TRUE(DevicePool().exclusive());
  EXPECT_TRUE(DevicePool({{.uuid = "GPU-a"}}).exclusive());
  EXPECT_FALSE(DevicePool({{.uuid = "GPU-a"}, {.uuid = "GPU-b", .replicas = 2}}).exclusive());
  EXPECT_FALSE(DevicePool({{.uuid = "MIG-a", .mig = true}}).exclusive());
}

}  // namespace
}  // namespace ndp::resource
