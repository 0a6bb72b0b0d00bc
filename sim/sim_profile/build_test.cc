#include "sim_profile/build.h"

#include <memory>
#include <set>

#include "testing/result_matchers.h"

namespace ndp::sim_profile {
namespace {

using sim_state::Control;

std::unique_ptr<Control> Build(const std::string& name, const BuildOptions& options = {}) {
  auto control = std::make_unique<Control>();
  const auto profile = LoadProfile(name);
  EXPECT_THAT(profile, IsOk());
  EXPECT_THAT(BuildMachine(*profile, options, *control), IsOk());
  return control;
}

int LinksBetween(const Control& control, unsigned a, unsigned b) {
  int count = 0;
  for (const auto& link : control.links[a]) {
    if (link.active != 0 && link.remote_type == 0 && link.remote.bus == control.gpus[b].pci.bus) {
      ++count;
    }
  }
  return count;
}

TEST(BuildTest, UuidsAreTheSameInEveryRunAndDifferBySeed) {
  const auto first = Build("dgx-h100");
  const auto second = Build("dgx-h100");
  const auto other = Build("dgx-h100", {.seed = "node-b"});
  std::set<std::string> uuids;
  for (unsigned i = 0; i < 8; ++i) {
    EXPECT_STREQ(first->gpus[i].uuid, second->gpus[i].uuid);
    uuids.insert(first->gpus[i].uuid);
    uuids.insert(other->gpus[i].uuid);
  }
  EXPECT_EQ(uuids.size(), 16U);
}

TEST(BuildTest, AnNvSwitchMachineHasAllItsLinksOnSwitches) {
  const auto control = Build("dgx-h100");
  int links = 0;
  for (const auto& link : control->links[3]) {
    if (link.active == 0) continue;
    ++links;
    EXPECT_EQ(link.remote_type, 2U);
  }
  EXPECT_EQ(links, 18);
  EXPECT_EQ(control->gpus[3].fabric.state, 3U);
  EXPECT_EQ(control->topology[0][3], 40);
  EXPECT_EQ(control->topology[0][4], 50);
}

TEST(BuildTest, TheCubeMeshIsSymmetricWithSixLinksEach) {
  const auto control = Build("dgx1-v100");
  for (unsigned a = 0; a < 8; ++a) {
    int links = 0;
    for (unsigned b = 0; b < 8; ++b) {
      if (a == b) continue;
      EXPECT_EQ(LinksBetween(*control, a, b), LinksBetween(*control, b, a));
      links += LinksBetween(*control, a, b);
    }
    EXPECT_EQ(links, 6) << "GPU " << a;
  }
  EXPECT_EQ(LinksBetween(*control, 0, 3), 2);
  EXPECT_EQ(control->topology[0][1], 10);
  EXPECT_EQ(control->topology[0][2], 30);
}

TEST(BuildTest, FewerGpusLeaveNoLinksToThoseThatAreNotThere) {
  const auto control = Build("dgx1-v100", {.gpus = 2});
  EXPECT_EQ(control->gpu_count, 2U);
  EXPECT_EQ(LinksBetween(*control, 0, 1), 1);
  EXPECT_EQ(control->links[0][1].active, 0U);
  Control fresh;
  EXPECT_THAT(BuildMachine(*LoadProfile("pcie-t4"), {.gpus = 5}, fresh),
              IsError(Code::kInvalidArgument));
}

TEST(BuildTest, PlatformsWithoutNvmlHaveNoDriver) {
  EXPECT_EQ(Build("wsl")->driver_present, 0U);
  EXPECT_EQ(Build("none")->gpu_count, 0U);
}

}  // namespace
}  // namespace ndp::sim_profile
