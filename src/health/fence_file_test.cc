#include "health/fence_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
