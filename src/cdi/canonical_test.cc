#include "cdi/canonical.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::cdi {
namespace {

using testing::ElementsAre;
using testing::Field;

Spec SpecWith(Edits edits) {
  Spec spec{.kind = "nvidia.com/gpu"};
  spec.devices = {{.name = "a", .edits = std::move(edits)}};
  return spec;
}

TEST(CanonicalTest, VersionIsTheOldestThatHasAllThatIsUsed) {
  EXPECT_EQ(MinimumVersion(SpecWith({.env = {"A=b"}})), "0.3.0");
  EXPECT_EQ(MinimumVersion(SpecWith({.mounts = {{"/a", "/a", {}, "tmpfs"}}})), "0.4.0");
  EXPECT_EQ(MinimumVersion(SpecWith({.device_nodes = {{.path = "/a", .host_path = "/a"}}})),
            "0.5.0");
  EXPECT_EQ(MinimumVersion(SpecWith({.additional_gids = {44}})), "0.7.0");
  EXPECT_EQ(MinimumVersion(SpecWith({.intel_rdt = IntelRdt{.clos_id = "x"}})), "0.7.0");
  EXPECT_EQ(MinimumVersion(SpecWith({.net_devices = {{"eth0", "net0"}}})), "1.1.0");
  EXPECT_EQ(MinimumVersion(SpecWith({.intel_rdt = IntelRdt{.enable_monitoring = true}})), "1.1.0");
}

TEST(CanonicalTest, DeviceNamesThatStartWithADigitNeed050) {
  Spec spec = SpecWith({.env = {"A=b"}});
  spec.devices[0].name = "0:1";
  EXPECT_EQ(MinimumVersion(spec), "0.5.0");
}

TEST(CanonicalTest, AnnotationsAndDotsInTheClassNeed060) {
  Spec annotated = SpecWith({.env = {"A=b"}});
  annotated.devices[0].annotations = {{"a", "b"}};
  EXPECT_EQ(MinimumVersion(annotated), "0.6.0");
  Spec dotted = SpecWith({.env = {"A=b"}});
  dotted.kind = "nvidia.com/gpu.shared";
  EXPECT_EQ(MinimumVersion(dotted), "0.6.0");
}

TEST(CanonicalTest, CommonEditsCountForTheVersion) {
  Spec spec = SpecWith({.env = {"A=b"}});
  spec.edits.additional_gids = {44};
  EXPECT_EQ(MinimumVersion(spec), "0.7.0");
}

TEST(CanonicalTest, RepeatsGoAndOrderOfEnvAndHooksStays) {
  Spec spec;
  spec.edits = {.env = {"B=1", "A=1", "B=1"}, .additional_gids = {109, 44, 109}};
  Simplify(spec);
  EXPECT_THAT(spec.edits.env, ElementsAre("B=1", "A=1"));
  EXPECT_THAT(spec.edits.additional_gids, ElementsAre(44, 109));
}

TEST(CanonicalTest, DevicesLoseWhatIsCommon) {
  Spec spec = SpecWith({.device_nodes = {{.path = "/dev/nvidia0"}, {.path = "/dev/nvidiactl"}}});
  spec.edits.device_nodes = {{.path = "/dev/nvidiactl"}};
  Simplify(spec);
  EXPECT_THAT(spec.devices[0].edits.device_nodes,
              ElementsAre(Field(&DeviceNode::path, "/dev/nvidia0")));
}

TEST(CanonicalTest, ADeviceIsNeverLeftWithNothing) {
  Spec spec = SpecWith({.device_nodes = {{.path = "/dev/nvidiactl"}}});
  spec.edits.device_nodes = {{.path = "/dev/nvidiactl"}};
  Simplify(spec);
  EXPECT_EQ(spec.devices[0].edits.device_nodes.size(), 1U);
}

TEST(CanonicalTest, ParentsComeBeforeWhatLiesBelowThem) {
  Spec spec;
  spec.edits.mounts = {
      {"/a/z/c", "/a/z/c", {}, ""}, {"/b/z", "/b/z", {}, ""}, {"/c", "/c", {}, ""}};
  spec.devices = {{.name = "b"}, {.name = "a"}};
  Simplify(spec);
  EXPECT_THAT(spec.edits.mounts, ElementsAre(Field(&Mount::container_path, "/c"),
                                             Field(&Mount::container_path, "/b/z"),
                                             Field(&Mount::container_path, "/a/z/c")));
  EXPECT_THAT(spec.devices, ElementsAre(Field(&Device::name, "a"), Field(&Device::name, "b")));
}

TEST(CanonicalTest, TwoHostPathsForOneContainerPathBothStay) {
  Spec spec;
  spec.edits.mounts = {{"/b", "/x", {}, ""}, {"/a", "/x", {}, ""}};
  Simplify(spec);
  EXPECT_THAT(spec.edits.mounts,
              ElementsAre(Field(&Mount::host_path, "/b"), Field(&Mount::host_path, "/a")));
}

TEST(CanonicalTest, OnlyReleasedVersionsAreKnown) {
  EXPECT_TRUE(IsKnownVersion("0.1.0"));
  EXPECT_TRUE(IsKnownVersion("v1.1.0"));
  EXPECT_FALSE(IsKnownVersion("0.9.0"));
  EXPECT_FALSE(IsKnownVersion("1.2.0"));
  EXPECT_TRUE(VersionLess("0.8.0", "1.0.0"));
}

}  // namespace
}  // namespace ndp::cdi
