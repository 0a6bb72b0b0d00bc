#include "plugin/allocate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "testing/result_matchers.h"

namespace ndp::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// GPUs 0 and 1 whole, GPU 2 with two MIG devices.
Resource Mixed() {
  return {.name = "nvidia.com/gpu",
          .units = {{.uuid = "GPU-z", .index = "0", .device_nodes = {"/dev/nvidia0"}},
                    {.uuid = "GPU-a", .index = "1", .gpu = 1, .device_nodes = {"/dev/nvidia1"}},
                    {.uuid = "MIG-b",
                     .index = "2:0",
                     .gpu = 2,
                     .mig = true,
                     .device_nodes = {"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap30"}},
                    {.uuid = "MIG-a",
                     .index = "2:1",
                     .gpu = 2,
                     .mig = true,
                     .device_nodes = {"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap39"}}},
          .devices = {{.id = "GPU-z"}, {.id = "GPU-a"}, {.id = "MIG-b"}, {.id = "MIG-a"}}};
}

// One answer with its views made into values, since the snapshot goes.
struct Answer {
  std::map<std::string, std::string> envs;
  std::vector<std::string> mounts;  // "container=host"
  std::vector<std::string> specs;   // "container=host"
  std::string annotation_key;
  std::string annotation;
  std::vector<std::string> cdi;
  std::vector<std::string> unhealthy;
};

class AllocateTest : public ::testing::Test {
 protected:
  Result<Answer> Ask(const Resource& resource, std::vector<std::string_view> ids) {
    const ResourceView view(resource);
    NDP_TRY(const ContainerAnswer answer, Allocate(view, ids, random_));
    Answer out;
    for (const auto& [key, value] : answer.envs) {
      EXPECT_TRUE(out.envs.emplace(key, value).second) << key << " twice";
    }
    for (const auto* mount : answer.mounts) {
      out.mounts.push_back(mount->container_path + "=" + mount->host_path);
    }
    for (const auto* spec : answer.device_specs) {
      out.specs.push_back(spec->container_path + "=" + spec->host_path);
    }
    if (answer.annotation) std::tie(out.annotation_key, out.annotation) = *answer.annotation;
    out.cdi.assign(answer.cdi_names.begin(), answer.cdi_names.end());
    out.unhealthy.assign(answer.unhealthy.begin(), answer.unhealthy.end());
    return out;
  }

  Resource resource_ = Mixed();
  AllocateOptions& options_ = resource_.options;
  std::mt19937_64 random_{1};
};

TEST_F(AllocateTest, IdsComeByIndexAndOnceWhateverTheOrder) {
  const auto answer = Ask(resource_, {"MIG-a", "GPU-a", "GPU-z", "GPU-a"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->envs, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "GPU-z,GPU-a,MIG-a")));
  EXPECT_THAT(answer->mounts, IsEmpty());
  EXPECT_THAT(answer->specs, IsEmpty());
  EXPECT_EQ(answer->annotation_key, "");
}

TEST_F(AllocateTest, IdsAreIndicesOnRequest) {
  options_.ids_by_index = true;
  const auto answer = Ask(resource_, {"MIG-b", "GPU-z"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->envs, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "0,2:0")));
}

TEST_F(AllocateTest, NothingIsHandedOutByAnIndexInDoubt) {
  options_.index_in_doubt = true;
  EXPECT_THAT(Ask(resource_, {"GPU-z"}), IsOk());
  options_.ids_by_index = true;
  EXPECT_THAT(Ask(resource_, {"GPU-z"}), IsErrorThat(Code::kUnavailable, HasSubstr("rescan")));
}

TEST_F(AllocateTest, ReplicasOfOneGpuAreTheGpuOnce) {
  resource_.units[0].replicas = 4;
  const auto answer = Ask(resource_, {"GPU-z::3", "GPU-z::0"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->envs, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "GPU-z")));
}

TEST_F(AllocateTest, MountsNameTheDevicesAndWinOverTheVariable) {
  options_.volume_mounts = true;
  options_.imex_channels = {0};
  const auto answer = Ask(resource_, {"GPU-a", "GPU-z"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->envs, UnorderedElementsAre(
                                Pair("NVIDIA_VISIBLE_DEVICES", "/var/run/nvidia-container-devices"),
                                Pair("NVIDIA_IMEX_CHANNELS", "0")));
  EXPECT_THAT(answer->mounts, ElementsAre("/var/run/nvidia-container-devices/GPU-z=/dev/null",
                                          "/var/run/nvidia-container-devices/GPU-a=/dev/null",
                                          "/var/run/nvidia-container-devices/imex/0=/dev/null"));
  // Without the variable's strategy there is no variable for the channels.
  options_.envvar = false;
  const auto mounts_only = Ask(resource_, {"GPU-a"});
  ASSERT_THAT(mounts_only, IsOk());
  EXPECT_THAT(mounts_only->envs,
              ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "/var/run/nvidia-container-devices")));
}

TEST_F(AllocateTest, SpecsAreTheNodesOfTheDevicesOnceAndTheControlNodes) {
  options_.pass_device_specs = true;
  options_.control_nodes = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
  options_.imex_channels = {0};
  options_.dev_root = "/run/nvidia/driver";
  const auto answer = Ask(resource_, {"MIG-a", "MIG-b"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(
      answer->specs,
      ElementsAre("/dev/nvidia2=/run/nvidia/driver/dev/nvidia2",
                  "/dev/nvidia-caps/nvidia-cap30=/run/nvidia/driver/dev/nvidia-caps/nvidia-cap30",
                  "/dev/nvidia-caps/nvidia-cap39=/run/nvidia/driver/dev/nvidia-caps/nvidia-cap39",
                  "/dev/nvidiactl=/run/nvidia/driver/dev/nvidiactl",
                  "/dev/nvidia-uvm=/run/nvidia/driver/dev/nvidia-uvm",
                  "/dev/nvidia-caps-imex-channels/channel0=/run/nvidia/driver/dev/"
                  "nvidia-caps-imex-channels/channel0"));
  options_.dev_root = "/";
  const auto plain = Ask(resource_, {"GPU-z"});
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->specs.front(), "/dev/nvidia0=/dev/nvidia0");
}

TEST_F(AllocateTest, CdiNamesDevicesThenChannelsThenTheAdditionalOnes) {
  options_.cdi_annotations = true;
  options_.cdi_cri = true;
  options_.imex_channels = {0};
  options_.cdi_additional = {"k8s.device-plugin.nvidia.com/imex-channel=0",
                             "k8s.device-plugin.nvidia.com/gds=all"};
  const auto answer = Ask(resource_, {"GPU-a", "GPU-z"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->cdi, ElementsAre("k8s.device-plugin.nvidia.com/gpu=GPU-z",
                                       "k8s.device-plugin.nvidia.com/gpu=GPU-a",
                                       "k8s.device-plugin.nvidia.com/imex-channel=0",
                                       "k8s.device-plugin.nvidia.com/gds=all"));
  EXPECT_EQ(answer->annotation,
            "k8s.device-plugin.nvidia.com/gpu=GPU-z,k8s.device-plugin.nvidia.com/gpu=GPU-a,"
            "k8s.device-plugin.nvidia.com/imex-channel=0,k8s.device-plugin.nvidia.com/gds=all");
  const std::regex key(
      "cdi\\.k8s\\.io/nvidia-device-plugin_"
      "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  EXPECT_TRUE(std::regex_match(answer->annotation_key, key)) << answer->annotation_key;
  const auto again = Ask(resource_, {"GPU-a"});
  ASSERT_THAT(again, IsOk());
  EXPECT_NE(again->annotation_key, answer->annotation_key) << "a name of its own per container";
}

// With another strategy on, a name that no runtime can resolve would only stop the container.
TEST_F(AllocateTest, ADeviceWithoutACdiEntryIsHandedOutByTheOtherStrategies) {
  options_.cdi_annotations = true;
  options_.cdi_cri = true;
  resource_.units[0].cdi = false;
  const auto both = Ask(resource_, {"GPU-a", "GPU-z"});
  ASSERT_THAT(both, IsOk());
  EXPECT_EQ(both->envs.at("NVIDIA_VISIBLE_DEVICES"), "GPU-z,GPU-a");
  EXPECT_THAT(both->cdi, ElementsAre("k8s.device-plugin.nvidia.com/gpu=GPU-a"));
  const auto none = Ask(resource_, {"GPU-z"});
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(none->cdi, IsEmpty());
  EXPECT_EQ(none->annotation, "") << "an empty annotation is no valid one";
}

TEST_F(AllocateTest, CdiNamesFollowTheIdStrategyAndThePrefix) {
  options_.cdi_annotations = true;
  options_.ids_by_index = true;
  options_.cdi_annotation_prefix = "example.org/";
  const auto answer = Ask(resource_, {"MIG-b"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->annotation, "k8s.device-plugin.nvidia.com/gpu=2:0");
  EXPECT_TRUE(answer->annotation_key.starts_with("example.org/nvidia-device-plugin_"));
  EXPECT_THAT(answer->cdi, IsEmpty()) << "cdi-cri is not on";
}

TEST_F(AllocateTest, CdiAloneSendsNoListAndNoSpecsButTheSwitchesAndMps) {
  options_.envvar = false;
  options_.cdi_cri = true;
  options_.pass_device_specs = true;
  options_.control_nodes = {"/dev/nvidiactl"};
  options_.imex_channels = {0};
  options_.gds = true;
  options_.mofed = true;
  options_.gdrcopy = true;
  options_.mps_root = "/run/nvidia/mps";
  resource_.units[0].replicas = 2;
  resource_.units[0].mps = true;
  const auto answer = Ask(resource_, {"GPU-z::1"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->envs,
              UnorderedElementsAre(Pair("NVIDIA_GDS", "enabled"), Pair("NVIDIA_MOFED", "enabled"),
                                   Pair("NVIDIA_GDRCOPY", "enabled"),
                                   Pair("CUDA_MPS_PIPE_DIRECTORY", "/mps/nvidia.com/gpu/pipe")));
  EXPECT_THAT(answer->specs, IsEmpty());
  EXPECT_THAT(answer->mounts,
              ElementsAre("/mps/nvidia.com/gpu/pipe=/run/nvidia/mps/nvidia.com/gpu/pipe",
                          "/dev/shm=/run/nvidia/mps/shm"));
}

TEST_F(AllocateTest, MpsIsForItsOwnDevicesOnly) {
  options_.mps_root = "/run/nvidia/mps";
  resource_.units[0].mps = true;
  const auto other = Ask(resource_, {"GPU-a"});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(other->envs, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "GPU-a")));
  EXPECT_THAT(other->mounts, IsEmpty());
}

TEST_F(AllocateTest, NoIdsAreAnEmptyAnswer) {
  options_.gds = true;
  options_.cdi_cri = true;
  const auto answer = Ask(resource_, {});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->envs, IsEmpty());
  EXPECT_THAT(answer->cdi, IsEmpty());
}

TEST_F(AllocateTest, AnUnknownIdIsNamedWithTheResource) {
  const auto names_both = ::testing::AllOf(HasSubstr("'GPU-q'"), HasSubstr("nvidia.com/gpu"));
  EXPECT_THAT(Ask(resource_, {"GPU-z", "GPU-q"}), IsErrorThat(Code::kNotFound, names_both));
  EXPECT_THAT(Ask(resource_, {""}), IsError(Code::kNotFound));
  EXPECT_THAT(Ask(resource_, {"GPU-z::0"}), IsError(Code::kNotFound)) << "it is not shared";
  // Listed because a pod holds it; nobody knows what to hand out for it.
  resource_.devices.push_back({.id = "GPU-gone", .healthy = false});
  EXPECT_THAT(Ask(resource_, {"GPU-gone"}), IsError(Code::kNotFound));
}

TEST_F(AllocateTest, MoreReplicasThanAllowedAreRefusedWithTheNumbers) {
  resource_.units[0].replicas = 4;
  options_.fail_requests_greater_than_one = true;
  EXPECT_THAT(
      Ask(resource_, {"GPU-z::0", "GPU-z::1", "GPU-z::1"}),
      IsErrorThat(Code::kInvalidArgument, MatchesRegex(".*maximum .*nvidia.com/gpu is 1; found 2 "
                                                       "\\(failRequestsGreaterThanOne\\)")));
  EXPECT_THAT(Ask(resource_, {"GPU-z::1", "GPU-z::1"}), IsOk());
  EXPECT_THAT(Ask(resource_, {"GPU-a", "MIG-b"}), IsOk()) << "these are not shared";
}

TEST_F(AllocateTest, AnUnhealthyDeviceIsHandedOutAndReported) {
  resource_.devices[1].healthy = false;
  const auto answer = Ask(resource_, {"GPU-a", "GPU-z"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(answer->unhealthy, ElementsAre("GPU-a"));
  EXPECT_THAT(answer->envs, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "GPU-z,GPU-a")));
}

TEST(PreferredAllocationTest, AsksThePoliciesAndNamesTheResourceInErrors) {
  const ResourceView view(Mixed());
  const std::vector<std::string_view> available = {"GPU-a", "GPU-z"};
  EXPECT_THAT(PreferredAllocation(view, available, {}, 2),
              IsOkAnd(UnorderedElementsAre("GPU-z", "GPU-a")));
  EXPECT_THAT(PreferredAllocation(view, available, {}, 3),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("nvidia.com/gpu")));
}

}  // namespace
}  // namespace ndp::plugin
