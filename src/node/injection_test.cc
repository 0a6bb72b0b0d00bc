#include "node/injection.h"

#include <gtest/gtest.h>

namespace ndp::node {
namespace {

constexpr std::string_view kHost =
    "28 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
    "25 28 0:5 / /dev rw,nosuid shared:2 - devtmpfs udev rw\n";
constexpr std::string_view kPod =
    "700 600 0:90 / / rw,relatime - overlay overlay rw,lowerdir=/a\n"
    "701 700 0:93 / /dev rw,nosuid - tmpfs tmpfs rw\n";
constexpr std::string_view kPodWithHostDev =
    "700 600 0:90 / / rw,relatime - overlay overlay rw,lowerdir=/a\n"
    "701 700 0:93 / /dev rw,nosuid - tmpfs tmpfs rw\n"
    "702 700 0:5 / /dev rw,nosuid master:2 - devtmpfs udev rw\n";
constexpr const char* kInRoot = "/driver-root/usr/lib64/libnvidia-ml.so.570";
constexpr const char* kInContainer = "/usr/lib64/libnvidia-ml.so.570";

bool Injected(std::string_view mounts, const char* library, const char* root = "/driver-root",
              const char* devices = "/") {
  return DriverIsInjected({mounts, library, root, devices});
}

TEST(InjectionTest, OutsideAContainerNothingIsInjected) {
  EXPECT_FALSE(Injected(kHost, kInContainer));
  EXPECT_FALSE(Injected("", kInContainer));
}

TEST(InjectionTest, LibrariesOfTheContainerAreInjected) {
  EXPECT_TRUE(Injected(kPod, kInContainer));
  EXPECT_TRUE(Injected(kPodWithHostDev, kInContainer));
}

TEST(InjectionTest, AMountedDriverRootNeedsTheHostsDeviceNodesToo) {
  EXPECT_FALSE(Injected(kPodWithHostDev, kInRoot));
  EXPECT_TRUE(Injected(kPod, kInRoot));
  EXPECT_FALSE(Injected(kPod, kInRoot, "/driver-root", "/driver-root")) << "its own /dev is used";
}

TEST(InjectionTest, ANeighbouringFolderIsNotTheDriverRoot) {
  EXPECT_TRUE(Injected(kPodWithHostDev, "/driver-root-old/libnvidia-ml.so.570"));
  EXPECT_FALSE(Injected(kPodWithHostDev, kInRoot, "/driver-root/"));
}

}  // namespace
}  // namespace ndp::node
