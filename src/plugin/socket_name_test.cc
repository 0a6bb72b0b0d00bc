#include "plugin/socket_name.h"

#include <gtest/gtest.h>

namespace ndp::plugin {
namespace {

TEST(SocketNameTest, NamesCarryTheResourceWithoutItsPrefix) {
  EXPECT_EQ(RegistrationSocketName("nvidia.com/mig-1g.10gb", 0xAB),
            "nvidia-mig-1g.10gb-000000ab.sock");
  EXPECT_EQ(FixedSocketName("nvidia.com/gpu"), "nvidia-gpu.sock");
  EXPECT_EQ(ResourceBaseName("gpu"), "gpu");
}

TEST(SocketNameTest, APluginsSocketIsOursOrUpstreams) {
  EXPECT_TRUE(IsPluginSocket("nvidia-gpu-0123abcd.sock"));
  EXPECT_TRUE(IsPluginSocket("nvidia-gpu.sock"));
  EXPECT_FALSE(IsPluginSocket("nvidia-.sock"));
  EXPECT_FALSE(IsPluginSocket("kubelet.sock"));
}

TEST(SocketNameTest, OnlyOurOwnFormIsARegistrationSocket) {
  EXPECT_TRUE(IsRegistrationSocket("nvidia-gpu-0123abcd.sock"));
  EXPECT_FALSE(IsRegistrationSocket("nvidia-gpu.sock"));
  EXPECT_FALSE(IsRegistrationSocket("nvidia-gpu-0123ABCD.sock"));
  EXPECT_FALSE(IsRegistrationSocket("nvidia-gpu-0123abc.sock"));
  EXPECT_FALSE(IsRegistrationSocket("nvidia--0123abcd.sockx"));
  EXPECT_FALSE(IsRegistrationSocket("amd-gpu-0123abcd.sock"));
  EXPECT_FALSE(IsRegistrationSocket("nvidia-.sock"));
  EXPECT_FALSE(IsRegistrationSocket("kubelet.sock"));
}

TEST(SocketNameTest, APeerServesTheSameResourceAndNoLongerName) {
  EXPECT_TRUE(ServesResource("nvidia-gpu.sock", "nvidia.com/gpu"));
  EXPECT_TRUE(ServesResource("nvidia-gpu-0123abcd.sock", "nvidia.com/gpu"));
  EXPECT_FALSE(ServesResource("nvidia-gpu.shared-0123abcd.sock", "nvidia.com/gpu"));
  EXPECT_FALSE(ServesResource("nvidia-mig-1g.10gb.me.sock", "nvidia.com/mig-1g.10gb"));
  EXPECT_FALSE(ServesResource("kubelet.sock", "nvidia.com/gpu"));
}

}  // namespace
}  // namespace ndp::plugin
