#include "plugin/resource_view.h"

#include <gtest/gtest.h>

namespace ndp::plugin {
namespace {

Resource TwoGpus() {
  return {.name = "nvidia.com/gpu",
          .units = {{.uuid = "GPU-a", .index = "0"}, {.uuid = "GPU-b", .index = "1", .gpu = 1}},
          .devices = {{.id = "GPU-a"}, {.id = "GPU-b", .healthy = false, .reason = "xid 79"}}};
}

TEST(ResourceViewTest, KnowsWhichIdsAreUnhealthy) {
  const ResourceView view(TwoGpus());
  EXPECT_TRUE(view.Unhealthy("GPU-b"));
  EXPECT_FALSE(view.Unhealthy("GPU-a"));
  EXPECT_FALSE(view.Unhealthy("GPU-c"));
}

TEST(ResourceViewTest, WithoutScoresAllPairsAreAlike) {
  const ResourceView view(TwoGpus());
  EXPECT_EQ(view.scores().Score(0, 1), resource::kScoreAcross);
}

// Each list makes the kubelet write its checkpoint: only what it can see counts.
TEST(ResourceViewTest, AReasonIsNoChangeOfTheList) {
  const ResourceView before(TwoGpus());
  Resource other = TwoGpus();
  other.devices[1].reason = "xid 48";
  EXPECT_TRUE(SameList(before, ResourceView(other)));
  other.devices[1].healthy = true;
  EXPECT_FALSE(SameList(before, ResourceView(other)));
  other = TwoGpus();
  other.devices[0].numa_node = 0;
  EXPECT_FALSE(SameList(before, ResourceView(other))) << "node 0 is a node";
  other = TwoGpus();
  other.devices.pop_back();
  EXPECT_FALSE(SameList(before, ResourceView(other)));
}

}  // namespace
}  // namespace ndp::plugin
