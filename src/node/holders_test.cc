#include "node/holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

namespace ndp::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kGpu = "nvidia.com/gpu";

class HoldersTest : public testing::Test {
 protected:
  HoldersTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()),
        loop_(*os::EventLoop::Create()),
        holders_(
            *loop_, [this](Holders::Answer answer) { asked_.push_back(std::move(answer)); },
            [this] { ++changes_; }, 1ms) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~HoldersTest() override { fs::remove_all(folder_); }

  // As the kubelet does: a new file each time.
  void Write(const std::string& id) {
    std::ofstream(folder_ / "new") << R"({"Data":{"PodDeviceEntries":[{"ResourceName":"nvidia.com/)"
                                   << R"(gpu","DeviceIDs":{"0":[")" << id << R"("]}}]}})";
    fs::rename(folder_ / "new", folder_ / "kubelet_internal_checkpoint");
  }

  // The next question is answered so; runs the loop until it may be asked again.
  void AnswerNext(Result<plugin::HeldDevices> held) {
    holders_.Doubt();
    ASSERT_EQ(asked_.size(), 1U);
    const int before = changes_;
    asked_.front()(std::move(held));
    asked_.clear();
    while (changes_ == before) loop_->RunOnce();
  }
  // A question whose timer is still running is not asked.
  void AnswerNextWhenAllowed(const Result<plugin::HeldDevices>& held) {
    while (asked_.empty()) {
      holders_.Doubt();
      if (asked_.empty()) loop_->RunOnce();
    }
    AnswerNext(held);
  }

  static plugin::HeldDevices Held(const std::string& id) {
    plugin::HeldDevices held;
    held.Add(kGpu, id);
    return held;
  }

  fs::path folder_;
  std::unique_ptr<os::EventLoop> loop_;
  std::vector<Holders::Answer> asked_;
  int changes_ = 0;
  Holders holders_;
};

TEST_F(HoldersTest, NothingIsHeldBeforeTheKubeletHasWritten) {
  holders_.Read(folder_);
  EXPECT_THAT(holders_.held().Resources(), IsEmpty());
}

// A pod that is being admitted is written down before the API lists it.
TEST_F(HoldersTest, AnEndedPodsDevicesAreFreeAfterTwoAnswersWithoutThem) {
  Write("GPU-0");
  holders_.Read(folder_);
  AnswerNextWhenAllowed(plugin::HeldDevices());
  EXPECT_TRUE(holders_.held().Holds(kGpu, "GPU-0"));
  AnswerNextWhenAllowed(plugin::HeldDevices());
  EXPECT_FALSE(holders_.held().Holds(kGpu, "GPU-0"));
  holders_.Read(folder_);  // the file still says so
  EXPECT_FALSE(holders_.held().Holds(kGpu, "GPU-0"));
}

TEST_F(HoldersTest, WhatOneOfTwoAnswersHasIsHeld) {
  Write("GPU-0");
  holders_.Read(folder_);
  AnswerNextWhenAllowed(plugin::HeldDevices());
  AnswerNextWhenAllowed(Held("GPU-0"));
  EXPECT_TRUE(holders_.held().Holds(kGpu, "GPU-0"));
}

// Held by a pod that is younger than the file: the kubelet writes it down before it starts.
TEST_F(HoldersTest, AnAnswerAddsNothing) {
  Write("GPU-0");
  holders_.Read(folder_);
  AnswerNextWhenAllowed(Held("GPU-9"));
  AnswerNextWhenAllowed(Held("GPU-9"));
  EXPECT_THAT(holders_.held().Resources(), IsEmpty());
}

TEST_F(HoldersTest, ANewFileCountsUntilItIsDoubtedAnew) {
  Write("GPU-0");
  holders_.Read(folder_);
  AnswerNextWhenAllowed(plugin::HeldDevices());
  AnswerNextWhenAllowed(plugin::HeldDevices());
  Write("GPU-0");
  holders_.Read(folder_);
  EXPECT_TRUE(holders_.held().Holds(kGpu, "GPU-0"));
}

TEST_F(HoldersTest, AnAnswerOlderThanTheFileIsNotUsed) {
  Write("GPU-0");
  holders_.Read(folder_);
  AnswerNextWhenAllowed(plugin::HeldDevices());
  while (asked_.empty()) {
    holders_.Doubt();
    if (asked_.empty()) loop_->RunOnce();
  }
  Write("GPU-1");
  AnswerNext(plugin::HeldDevices());
  EXPECT_THAT(holders_.held().Ids(kGpu), ElementsAre("GPU-1"));
}

TEST_F(HoldersTest, WhereTheKubeletCannotBeAskedTheFileCounts) {
  Write("GPU-0");
  holders_.Read(folder_);
  for (int i = 0; i < 3; ++i) AnswerNextWhenAllowed(Error(Code::kNotFound, "no such file"));
  EXPECT_TRUE(holders_.held().Holds(kGpu, "GPU-0"));
}

TEST_F(HoldersTest, AFileThatCannotBeReadChangesNothing) {
  Write("GPU-0");
  holders_.Read(folder_);
  std::ofstream(folder_ / "kubelet_internal_checkpoint") << "{";
  holders_.Read(folder_);
  EXPECT_TRUE(holders_.held().Holds(kGpu, "GPU-0"));
  EXPECT_NE(holders_.error(), "");
}

}  // namespace
}  // namespace ndp::node
