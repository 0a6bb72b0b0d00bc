#include "cdi/spec_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cdi/text.h"
#include "os/file.h"
#include "testing/result_matchers.h"
#include "testing/temp_dir.h"

namespace ndp::cdi {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kGpuFile = "cdi/k8s.device-plugin.nvidia.com-gpu.json";

Spec SpecOf(const std::string& device_class, const std::string& device) {
  Spec spec{.version = "0.3.0", .kind = "k8s.device-plugin.nvidia.com/" + device_class};
  spec.devices = {{.name = device, .edits = {.env = {"A=b"}}}};
  return spec;
}

class SpecDirTest : public testing::Test {
 protected:
  TempDir temp_;
  SpecDir dir_{temp_ / "cdi"};
};

TEST_F(SpecDirTest, MakesTheFolderAndTheFile) {
  EXPECT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")), IsOkAnd(true));
  EXPECT_EQ(temp_.Read(kGpuFile), ToJson(SpecOf("gpu", "GPU-1")));
  struct stat info{};
  ASSERT_EQ(stat((temp_ / kGpuFile).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0644U);
  ASSERT_EQ(stat((temp_ / "cdi").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0755U);
}

TEST_F(SpecDirTest, TheSameContentKeepsItsInode) {
  ASSERT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")), IsOkAnd(true));
  auto before = os::Identify(temp_ / kGpuFile);
  EXPECT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")), IsOkAnd(false));
  EXPECT_EQ(*os::Identify(temp_ / kGpuFile), *before);
  EXPECT_THAT(dir_.Write(SpecOf("gpu", "GPU-2")), IsOkAnd(true));
}

TEST_F(SpecDirTest, AFolderRemovedWhileRunningIsMadeAgain) {
  ASSERT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")), IsOk());
  std::filesystem::remove_all(temp_ / "cdi");
  EXPECT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")), IsOkAnd(true));
}

TEST_F(SpecDirTest, AForeignFileOfOurNameIsLeftAlone) {
  Spec foreign = SpecOf("gpu", "0");
  foreign.kind = "nvidia.com/gpu";
  temp_.Write(kGpuFile, ToJson(foreign));
  EXPECT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")),
              IsErrorThat(Code::kInvalidArgument,
                          AllOf(HasSubstr(kGpuFile), HasSubstr("\"nvidia.com/gpu\""))));
  EXPECT_EQ(temp_.Read(kGpuFile), ToJson(foreign));
}

TEST_F(SpecDirTest, ABrokenFileOfOurNameIsReplaced) {
  temp_.Write(kGpuFile, "{\"cdiVersion\":");
  EXPECT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")), IsOkAnd(true));
}

TEST_F(SpecDirTest, AFolderOfOurNameIsNamed) {
  std::filesystem::create_directories(temp_ / kGpuFile);
  EXPECT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("is a folder")));
}

TEST_F(SpecDirTest, AnUnusableFolderIsNamed) {
  temp_.Write("cdi", "a file");
  const auto written = dir_.Write(SpecOf("gpu", "GPU-1"));
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message(), HasSubstr((temp_ / "cdi").string()));
}

TEST_F(SpecDirTest, ReadsBackOnlyItsOwn) {
  EXPECT_EQ(dir_.Read("k8s.device-plugin.nvidia.com/gpu"), std::nullopt);
  ASSERT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")), IsOk());
  EXPECT_EQ(dir_.Read("k8s.device-plugin.nvidia.com/gpu"), SpecOf("gpu", "GPU-1"));
  temp_.Write(kGpuFile, "kind: nvidia.com/gpu");
  EXPECT_EQ(dir_.Read("k8s.device-plugin.nvidia.com/gpu"), std::nullopt);
}

TEST_F(SpecDirTest, OnlyOurFilesOfDisabledClassesAreRemoved) {
  for (const char* device_class : {"gpu", "gds", "mofed"}) {
    ASSERT_THAT(dir_.Write(SpecOf(device_class, "all")), IsOk());
  }
  temp_.Write("cdi/k8s.device-plugin.nvidia.com-gdrcopy.json", "kind: other.com/gdrcopy");
  EXPECT_THAT(dir_.RemoveDisabled({"gpu", "mofed"}),
              ElementsAre(temp_ / "cdi/k8s.device-plugin.nvidia.com-gds.json"));
  EXPECT_TRUE(std::filesystem::exists(temp_ / "cdi/k8s.device-plugin.nvidia.com-gdrcopy.json"));
}

TEST_F(SpecDirTest, WhatOthersDoInTheFolderIsSeen) {
  const std::string empty = dir_.OthersState();
  ASSERT_THAT(dir_.Write(SpecOf("gpu", "GPU-1")), IsOk());
  temp_.Write("cdi/notes.txt", "no specification");
  EXPECT_EQ(dir_.OthersState(), empty);
  temp_.Write("cdi/copy.json", "{}");
  const std::string one = dir_.OthersState();
  EXPECT_NE(one, empty);
  temp_.Write("cdi/copy.json", "{ }");
  EXPECT_NE(dir_.OthersState(), one);
  std::filesystem::remove(temp_ / "cdi/copy.json");
  EXPECT_EQ(dir_.OthersState(), empty);
}

TEST_F(SpecDirTest, FilesThatDefineTheSameNameAreReported) {
  const Spec ours = SpecOf("gpu", "GPU-1");
  ASSERT_THAT(dir_.Write(ours), IsOk());
  temp_.Write("cdi/other.yaml", ToYaml(SpecOf("gpu", "GPU-2")));
  EXPECT_THAT(dir_.Conflicts(ours), IsEmpty());
  temp_.Write("cdi/copy.json", ToJson(ours));
  temp_.Write("cdi/copy.txt", ToJson(ours));
  EXPECT_THAT(dir_.Conflicts(ours),
              ElementsAre(Pair(temp_ / "cdi/copy.json", ElementsAre("GPU-1"))));
}

}  // namespace
}  // namespace ndp::cdi
