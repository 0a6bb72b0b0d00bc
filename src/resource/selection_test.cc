#include "resource/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resource/test_inventory.h"

namespace ndp::resource {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SelectionTest, EveryGpuCountsWithoutSelectors) {
  const Selection selection = SelectGpus({}, TestGpus(3));
  EXPECT_THAT(selection.gpus, ElementsAre(0, 1, 2));
  EXPECT_THAT(selection.excluded, IsEmpty());
}

TEST(SelectionTest, ExcludeWinsOverIncludeAndTheReasonNamesTheSelector) {
  config::Devices devices;
  devices.include = {TestSelector(config::NamePattern{"*A100*"})};
  devices.exclude = {{.where = {"devices.exclude[0]", 7}, .conditions = {config::GpuIndex{1}}}};
  const Selection selection = SelectGpus(devices, TestGpus(3));
  EXPECT_THAT(selection.gpus, ElementsAre(0, 2));
  ASSERT_EQ(selection.excluded.size(), 1U);
  EXPECT_EQ(selection.excluded[0],
            (NotOffered{"1", "GPU-1", "excluded by devices.exclude[0] (line 7): 1"}));
}

TEST(SelectionTest, WhatNoIncludeMatchesIsOut) {
  config::Devices devices;
  devices.include = {TestSelector(config::DeviceUuid{"GPU-2"}),
                     TestSelector(config::PciBusId{"0000:00:00.0"})};
  EXPECT_THAT(SelectGpus(devices, TestGpus(3)).gpus, ElementsAre(0, 2));
}

TEST(SelectionTest, AllConditionsOfASelectorMustHold) {
  const config::DeviceSelector selector = {
      .where = {}, .conditions = {config::NamePattern{"*A100*"}, config::MinMemory{41ULL << 30}}};
  inventory::Gpu gpu = TestGpu(0);
  EXPECT_FALSE(Matches(selector, gpu));
  gpu.nvml.memory_bytes = 80ULL << 30;
  EXPECT_TRUE(Matches(selector, gpu));
  gpu.nvml.memory_bytes.reset();
  EXPECT_FALSE(Matches(selector, gpu));
}

TEST(SelectionTest, SelectorThatMatchesNothingNamesTheGpusThereAre) {
  config::Devices devices;
  devices.exclude = {{.where = {"devices.exclude[0]", 7}, .conditions = {config::GpuIndex{9}}}};
  EXPECT_THAT(SelectGpus(devices, TestGpus(2)).warnings,
              ElementsAre(AllOf(HasSubstr("devices.exclude[0] (line 7): 9 matches no GPU"),
                                HasSubstr("0 (GPU-0, 0000:00:00.0, NVIDIA A100-SXM4-40GB), 1 ("))));
  EXPECT_THAT(SelectGpus(devices, TestGpus(0)).warnings, IsEmpty());
}

}  // namespace
}  // namespace ndp::resource
