#include "base/ids.h"

#include <gtest/gtest.h>

namespace ndp {
namespace {

TEST(DeviceIdTest, ReadsReplicas) {
  EXPECT_EQ(ParseDeviceId("GPU-5f3a::3"), (DeviceId{"GPU-5f3a", 3}));
  EXPECT_EQ(ParseDeviceId("GPU-5f3a"), (DeviceId{"GPU-5f3a", -1}));
  EXPECT_EQ(ParseDeviceId("GPU-5f3a::x"), (DeviceId{"GPU-5f3a::x", -1}));
  EXPECT_EQ(ParseDeviceId("::"), (DeviceId{"::", -1}));
  EXPECT_EQ(ParseDeviceId(""), (DeviceId{"", -1}));
  EXPECT_EQ(ParseDeviceId("GPU-a::99999999999999999999"),
            (DeviceId{"GPU-a::99999999999999999999", -1}));
}

TEST(DeviceIdTest, TextIsTheInverse) {
  for (const char* text : {"GPU-1::0", "MIG-2", "MIG-2::17"})
    EXPECT_EQ(ParseDeviceId(text).Text(), text);
}

TEST(StripReplicaTest, LeavesWholeDevicesAlone) {
  EXPECT_EQ(StripReplica("GPU-1::12"), "GPU-1");
  EXPECT_EQ(StripReplica("GPU-1"), "GPU-1");
  EXPECT_EQ(StripReplica("GPU-1::"), "GPU-1::");
}

}  // namespace
}  // namespace ndp
