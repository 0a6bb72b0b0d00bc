#include "health/fan_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::health {
namespace {
using ::testing::ElementsAre;

nvml::Event Xid(std::optional<unsigned> gi = {}, std::optional<unsigned> ci = {}) {
  return {.type = nvml::kEventXid, .data = 61, .gpu_instance = gi, .compute_instance = ci};
}

inventory::MigDevice Mig(std::string uuid, unsigned gi, unsigned ci) {
  return {.nvml = {.uuid = std::move(uuid), .gpu_instance = gi, .compute_instance = ci}};
}

inventory::Gpu FullGpu() { return {.nvml = {.uuid = "GPU-a", .mig_mode = nvml::MigMode{}}}; }

// Two compute instances on GPU instance 2, one each on 3 and 4.
inventory::Gpu MigGpu() {
  return {
      .nvml = {.uuid = "GPU-a", .mig_mode = nvml::MigMode{.current = true, .pending = true}},
      .mig = {Mig("MIG-20", 2, 0), Mig("MIG-21", 2, 1), Mig("MIG-30", 3, 0), Mig("MIG-40", 4, 0)}};
}

std::vector<std::string> Affected(const inventory::Gpu& gpu, const nvml::Event& event,
                                  bool needs_reset = false) {
  return AffectedDevices(gpu, ScopeOf(gpu, event, needs_reset));
}

TEST(FanOutTest, FullGpuIsOneDevice) {
  EXPECT_THAT(Affected(FullGpu(), Xid()), ElementsAre("GPU-a"));
}

TEST(FanOutTest, InstancesOnAGpuWithoutMigAreNotItsParts) {
  EXPECT_THAT(Affected(FullGpu(), Xid(2, 0)), ElementsAre("GPU-a"));
  EXPECT_TRUE(ScopeOf(FullGpu(), Xid(2, 0), false).whole());
}

TEST(FanOutTest, GpuAndComputeInstanceNameOneDevice) {
  EXPECT_THAT(Affected(MigGpu(), Xid(2, 1)), ElementsAre("GPU-a", "MIG-21"));
}

TEST(FanOutTest, GpuInstanceAloneIsAllItsComputeInstances) {
  EXPECT_THAT(Affected(MigGpu(), Xid(2)), ElementsAre("GPU-a", "MIG-20", "MIG-21"));
}

TEST(FanOutTest, NeitherIsEveryMigDevice) {
  EXPECT_THAT(Affected(MigGpu(), Xid()),
              ElementsAre("GPU-a", "MIG-20", "MIG-21", "MIG-30", "MIG-40"));
}

TEST(FanOutTest, AComputeInstanceWithoutItsGpuInstanceNamesNothing) {
  EXPECT_THAT(Affected(MigGpu(), Xid({}, 0)),
              ElementsAre("GPU-a", "MIG-20", "MIG-21", "MIG-30", "MIG-40"));
}

TEST(FanOutTest, WhatNeedsAResetIsTheWholeGpus) {
  EXPECT_THAT(Affected(MigGpu(), Xid(2, 0), true),
              ElementsAre("GPU-a", "MIG-20", "MIG-21", "MIG-30", "MIG-40"));
}

TEST(FanOutTest, AnInstanceThatIsNotThereHitsNoOther) {
  EXPECT_THAT(Affected(MigGpu(), Xid(9, 0)), ElementsAre("GPU-a"));
}

TEST(FanOutTest, SaysWhichPart) {
  EXPECT_EQ(ScopeText({}), "");
  EXPECT_EQ(ScopeText({.gpu_instance = 2}), " (GPU instance 2)");
  EXPECT_EQ(ScopeText({.gpu_instance = 2, .compute_instance = 0}),
            " (GPU instance 2, compute instance 0)");
}

}  // namespace
}  // namespace ndp::health
