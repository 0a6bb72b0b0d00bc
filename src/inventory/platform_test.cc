#include "inventory/platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_driver.h"
#include "testing/fake_node.h"
#include "testing/result_matchers.h"

namespace ndp::inventory {
namespace {
using config::DiscoveryStrategy;
using testing::HasSubstr;

TEST(DetectPlatformTest, FollowsTheOrderOfEvidence) {
  EXPECT_EQ(DetectPlatform({.dxcore = true, .tegra_files = true, .nvml = true, .gpu_names = {}}),
            Platform::kWsl);
  EXPECT_EQ(DetectPlatform({.dxcore = false, .tegra_files = true, .nvml = false, .gpu_names = {}}),
            Platform::kTegra);
  EXPECT_EQ(DetectPlatform(
                {.dxcore = false, .tegra_files = true, .nvml = true, .gpu_names = {"NVIDIA H100"}}),
            Platform::kNvml);
  EXPECT_EQ(
      DetectPlatform(
          {.dxcore = false, .tegra_files = false, .nvml = true, .gpu_names = {"NVIDIA Thor"}}),
      Platform::kTegra);
  EXPECT_EQ(DetectPlatform({}), Platform::kUnknown);
}

TEST(DetectPlatformTest, AStrategyOverrulesWhatTheSystemLooksLike) {
  const PlatformEvidence thor{
      .dxcore = false, .tegra_files = true, .nvml = true, .gpu_names = {"NVIDIA Thor"}};
  EXPECT_EQ(DetectPlatform(thor, DiscoveryStrategy::kNvml), Platform::kNvml);
  EXPECT_EQ(DetectPlatform(thor, DiscoveryStrategy::kAuto), Platform::kTegra);
  const PlatformEvidence server{
      .dxcore = false, .tegra_files = false, .nvml = true, .gpu_names = {"NVIDIA H100"}};
  EXPECT_EQ(DetectPlatform(server, DiscoveryStrategy::kTegra), Platform::kTegra);
}

class PlatformLoaderTest : public testing::Test {
 protected:
  PlatformLoaderTest() { machine_.SetInitError(Error(Code::kNotFound, "no libnvidia-ml.so.1")); }
  PlatformLoader Loader(DiscoveryStrategy strategy = DiscoveryStrategy::kAuto) {
    return {
        machine_,
        {.driver_root = files_.fs().root(), .host_root = files_.fs().root(), .strategy = strategy}};
  }

  FakeNode files_;
  FakeMachine machine_;
};

TEST_F(PlatformLoaderTest, ATegraWithoutNvmlHasASessionThatKnowsNoGpu) {
  files_.File("/sys/devices/soc0/family", "Tegra\n");
  PlatformLoader loader = Loader();
  auto driver = loader.Open();
  ASSERT_THAT(driver, IsOk());
  EXPECT_EQ((*driver)->DeviceCount().value_or(7), 0U);
  EXPECT_EQ(loader.PlatformOf({}), Platform::kTegra);
}

TEST_F(PlatformLoaderTest, AWslSystemWithoutNvmlToo) {
  files_.File("/usr/lib/wsl/lib/libdxcore.so");
  PlatformLoader loader = Loader();
  ASSERT_THAT(loader.Open(), IsOk());
  EXPECT_EQ(loader.PlatformOf({}), Platform::kWsl);
}

TEST_F(PlatformLoaderTest, AnyOtherSystemNeedsNvml) {
  PlatformLoader loader = Loader();
  EXPECT_THAT(loader.Open(), IsErrorThat(Code::kNotFound, HasSubstr("neither NVML nor")));
}

TEST_F(PlatformLoaderTest, AskedForNvmlATegraNeedsItToo) {
  files_.File("/etc/nv_tegra_release");
  PlatformLoader loader = Loader(DiscoveryStrategy::kNvml);
  EXPECT_THAT(loader.Open(), IsError(Code::kNotFound));
}

// The module may just not be loaded yet: that is no reason to do without.
TEST_F(PlatformLoaderTest, ALibraryThatDoesNotStartIsTriedAgain) {
  files_.File("/etc/nv_tegra_release");
  machine_.SetInitError(Error(Code::kUnavailable, "driver not loaded"));
  PlatformLoader loader = Loader();
  EXPECT_THAT(loader.Open(), IsError(Code::kUnavailable));
  PlatformLoader asked_for = Loader(DiscoveryStrategy::kTegra);
  EXPECT_THAT(asked_for.Open(), IsOk());
}

TEST_F(PlatformLoaderTest, AnIntegratedGpuIsToldByItsName) {
  machine_.SetInitError(std::nullopt);
  machine_.AddGpu("GPU-a", "0000:01:00.0");
  PlatformLoader loader = Loader();
  auto driver = loader.Open();
  ASSERT_THAT(driver, IsOk());
  Scan scan{.driver = {}, .gpus = {(*driver)->ReadGpu(0)}};
  EXPECT_EQ(loader.PlatformOf(scan), Platform::kNvml);
  scan.gpus[0]->name = "Orin (nvgpu)";
  EXPECT_EQ(loader.PlatformOf(scan), Platform::kTegra);
}

}  // namespace
}  // namespace ndp::inventory
