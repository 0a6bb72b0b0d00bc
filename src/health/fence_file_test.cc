#include "health/fence_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "testing/result_matchers.h"
#include "testing/run_until.h"
#include "testing/temp_dir.h"

namespace ndp::health {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FenceFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = os::EventLoop::Create();
    ASSERT_THAT(loop, IsOk());
    loop_ = std::move(*loop);
  }
  void Open() {
    file_.emplace(*loop_, dir_ / "etc/fences.yaml",
                  FenceFile::Callbacks{.fences =
                                           [this](std::vector<Fence> fences) {
                                             ++loads_;
                                             fences_ = std::move(fences);
                                           },
                                       .broken = [this](const Error& e) { error_ = e.message(); },
                                       .clear =
                                           [this](std::vector<std::string> gpus, WallTime) {
                                             ++clears_;
                                             cleared_ = std::move(gpus);
                                           }});
  }
  bool Until(const std::function<bool()>& condition) { return RunUntil(*loop_, condition); }

  TempDir dir_;
  std::unique_ptr<os::EventLoop> loop_;
  int loads_ = 0;
  int clears_ = 0;
  std::vector<Fence> fences_;
  std::vector<std::string> cleared_;
  std::string error_;
  std::optional<FenceFile> file_;
};

TEST_F(FenceFileTest, AMissingFileHasNoFencesAndIsWaitedFor) {
  Open();
  EXPECT_EQ(loads_, 1);
  EXPECT_THAT(fences_, IsEmpty());
  dir_.Write("etc/fences.yaml", "[{index: 3}]");
  EXPECT_TRUE(Until([&] { return fences_.size() == 1; }));
}

TEST_F(FenceFileTest, ChangesCountBothWays) {
  dir_.Write("etc/fences.yaml", "[{index: 3}]");
  Open();
  EXPECT_THAT(fences_, SizeIs(1));
  dir_.Write("etc/fences.yaml", "[{index: 3}, {index: 4}]");
  EXPECT_TRUE(Until([&] { return fences_.size() == 2; }));
  std::filesystem::remove(dir_ / "etc/fences.yaml");
  EXPECT_TRUE(Until([&] { return fences_.empty(); }));
}

TEST_F(FenceFileTest, ABrokenFileLeavesTheFencesAndNamesTheLine) {
  dir_.Write("etc/fences.yaml", "[{index: 3}]");
  Open();
  dir_.Write("etc/new", "fences:\n- nonsense: 1\n");
  std::filesystem::rename(dir_ / "etc/new", dir_ / "etc/fences.yaml");
  EXPECT_TRUE(Until([&] { return !error_.empty(); }));
  EXPECT_THAT(error_, HasSubstr("fences.yaml: line 2"));
  EXPECT_THAT(fences_, SizeIs(1));
}

TEST_F(FenceFileTest, TheSameContentIsNoChange) {
  dir_.Write("etc/fences.yaml", "[{index: 3}]");
  Open();
  dir_.Write("etc/other", "");
  dir_.Write("etc/fences.yaml", "[{index: 3}]");
  dir_.Write("etc/clear", "");
  EXPECT_TRUE(Until([&] { return clears_ == 1; }));
  EXPECT_EQ(loads_, 1);
}

TEST_F(FenceFileTest, WhatIsNoFileOrTooLargeIsToldAndTheLastFencesStay) {
  dir_.Write("etc/fences.yaml", "[{index: 3}]");
  Open();
  const auto told = [&](std::string_view what) {
    EXPECT_TRUE(Until([&] { return error_.find(what) != std::string::npos; })) << what;
    EXPECT_THAT(fences_, SizeIs(1));
    error_.clear();
  };
  // A hundred gigabytes, of which the disk has none.
  dir_.Write("etc/new", "");
  std::filesystem::resize_file(dir_ / "etc/new", 100LL << 30);
  std::filesystem::rename(dir_ / "etc/new", dir_ / "etc/fences.yaml");
  told("larger than 1048576 bytes");
  ASSERT_EQ(mkfifo((dir_ / "etc/new").c_str(), 0600), 0);
  std::filesystem::rename(dir_ / "etc/new", dir_ / "etc/fences.yaml");
  told("not a file");
  std::filesystem::create_symlink("fences.yaml", dir_ / "etc/new");
  std::filesystem::rename(dir_ / "etc/new", dir_ / "etc/fences.yaml");
  told("fences.yaml");
  std::filesystem::remove(dir_ / "etc/fences.yaml");
  std::filesystem::create_directory(dir_ / "etc/fences.yaml");
  told("not a file");
}

TEST_F(FenceFileTest, AWindowsEditorsFileIsUnderstood) {
  dir_.Write("etc/fences.yaml",
             "\xEF\xBB\xBF"
             "fences:\r\n- index: 3\r\n  reason: RMA\r\n");
  Open();
  EXPECT_EQ(error_, "");
  ASSERT_THAT(fences_, SizeIs(1));
  EXPECT_EQ(fences_.front().reason, "RMA");
}

// Empty means all GPUs: what somebody has just begun to write is not that.
TEST_F(FenceFileTest, ClearIsReadWhenItIsWhole) {
  dir_.Write("etc/fences.yaml", "");
  Open();
  std::ofstream clear(dir_ / "etc/clear");
  ASSERT_TRUE(clear.is_open());
  dir_.Write("etc/fences.yaml", "[{index: 3}]");  // seen after the file above has appeared
  EXPECT_TRUE(Until([&] { return fences_.size() == 1; }));
  EXPECT_EQ(clears_, 0);
  clear << "1\n" << std::flush;
  dir_.Write("etc/fences.yaml", "[{index: 3}, {index: 4}]");
  EXPECT_TRUE(Until([&] { return fences_.size() == 2; }));
  EXPECT_EQ(clears_, 0);
  clear << "2\n";
  clear.close();
  EXPECT_TRUE(Until([&] { return clears_ == 1; }));
  EXPECT_THAT(cleared_, ElementsAre("1", "2"));
}

TEST_F(FenceFileTest, ClearNamesGpusOrAll) {
  dir_.Write("etc/clear", "3\n GPU-a \n\n");
  Open();
  EXPECT_THAT(cleared_, ElementsAre("3", "GPU-a"));
  EXPECT_EQ(clears_, 1);
}

}  // namespace
}  // namespace ndp::health
