#include "rpc/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device_plugin.pb.h"

namespace ndp::rpc {
namespace {

TEST(MessagesTest, AListCarriesHealthAndNumaNodeZero) {
  const plugin::ResourceView view(
      {.name = "nvidia.com/gpu",
       .devices = {{.id = "GPU-a", .numa_node = 0}, {.id = "GPU-b", .healthy = false}}});
  v1beta1::ListAndWatchResponse message;
  Fill(view, message);
  ASSERT_EQ(message.devices_size(), 2);
  EXPECT_EQ(message.devices(0).id(), "GPU-a");
  EXPECT_EQ(message.devices(0).health(), "Healthy");
  ASSERT_EQ(message.devices(0).topology().nodes_size(), 1);
  EXPECT_EQ(message.devices(0).topology().nodes(0).id(), 0);
  EXPECT_EQ(message.devices(1).health(), "Unhealthy");
  EXPECT_FALSE(message.devices(1).has_topology());
}

// Bytes as any other implementation reads them: field numbers and types are the contract.
TEST(MessagesTest, TheWireIsTheKubelets) {
  const plugin::ResourceView view({.name = "r", .devices = {{.id = "a", .numa_node = 1}}});
  v1beta1::ListAndWatchResponse message;
  Fill(view, message);
  EXPECT_EQ(message.SerializeAsString(), std::string("\x0A\x12\x0A\x01"
                                                     "a\x12\x07Healthy\x1A\x04\x0A\x02\x08\x01",
                                                     20));
}

TEST(MessagesTest, AnAnswerCarriesAllItsParts) {
  const plugin::ResourceView::Mount mount{.container_path = "/c", .host_path = "/h"};
  const plugin::ResourceView::DeviceSpec spec{.container_path = "/dev/a", .host_path = "/r/dev/a"};
  plugin::ContainerAnswer answer;
  answer.envs.emplace_back("K", "v");
  answer.mounts = {&mount};
  answer.device_specs = {&spec};
  answer.annotation = {"cdi.k8s.io/x", "k=v"};
  answer.cdi_names = {"vendor/gpu=0"};
  v1beta1::ContainerAllocateResponse message;
  Fill(answer, message);
  EXPECT_EQ(message.envs().at("K"), "v");
  ASSERT_EQ(message.mounts_size(), 1);
  EXPECT_EQ(message.mounts(0).container_path(), "/c");
  EXPECT_EQ(message.mounts(0).host_path(), "/h");
  EXPECT_FALSE(message.mounts(0).read_only());
  ASSERT_EQ(message.devices_size(), 1);
  EXPECT_EQ(message.devices(0).container_path(), "/dev/a");
  EXPECT_EQ(message.devices(0).host_path(), "/r/dev/a");
  EXPECT_EQ(message.devices(0).permissions(), "rw");
  EXPECT_EQ(message.annotations().at("cdi.k8s.io/x"), "k=v");
  ASSERT_EQ(message.cdi_devices_size(), 1);
  EXPECT_EQ(message.cdi_devices(0).name(), "vendor/gpu=0");
}

}  // namespace
}  // namespace ndp::rpc
