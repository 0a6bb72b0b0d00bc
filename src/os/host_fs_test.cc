#include "os/host_fs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "testing/result_matchers.h"
#include "testing/temp_dir.h"

namespace ndp::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HostFsTest : public testing::Test {
 protected:
  TempDir dir_;
  HostFs fs_{dir_.path()};
};

TEST_F(HostFsTest, PathsStayBeneathTheRoot) {
  EXPECT_EQ(fs_.Path("/proc/version"), dir_ / "proc/version");
  EXPECT_EQ(fs_.Path("/../../etc/passwd"), dir_ / "etc/passwd");
  EXPECT_EQ(fs_.Path("/"), dir_.path());
  EXPECT_EQ(HostFs().Path("/dev/null"), "/dev/null");
}

TEST_F(HostFsTest, ReadsUpToTheLimit) {
  dir_.Write("f", std::string(10'000, 'x'));
  EXPECT_THAT(fs_.Read("/f", 10'000), IsOkAnd(std::string(10'000, 'x')));
  EXPECT_THAT(fs_.Read("/f", 9'999), IsErrorThat(Code::kInvalidArgument, HasSubstr("9999 bytes")));
}

TEST_F(HostFsTest, ReadsFilesThatSayTheyAreEmpty) {
  EXPECT_THAT(HostFs().Read("/proc/self/status"), IsOkAnd(HasSubstr("Name:")));
}

TEST_F(HostFsTest, ErrorsNameTheHostPath) {
  EXPECT_THAT(fs_.Read("/none"), IsErrorThat(Code::kNotFound, HasSubstr((dir_ / "none").string())));
  EXPECT_THAT(fs_.List("/none"), IsError(Code::kNotFound));
  EXPECT_THAT(fs_.Read("/"), IsErrorThat(Code::kInternal, HasSubstr("directory")));
}

TEST_F(HostFsTest, AFifoDoesNotBlock) {
  ASSERT_EQ(mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(fs_.Read("/fifo"), IsOkAnd(""));
}

TEST_F(HostFsTest, ListsSorted) {
  dir_.Write("d/b", "");
  dir_.Write("d/a", "");
  EXPECT_THAT(fs_.List("/d"), IsOkAnd(ElementsAre("a", "b")));
  EXPECT_TRUE(fs_.IsDirectory("/d"));
  EXPECT_TRUE(fs_.Exists("/d/a"));
  EXPECT_FALSE(fs_.IsDirectory("/d/a"));
  EXPECT_FALSE(fs_.Exists("/d/c"));
}

TEST_F(HostFsTest, ARealNodeIsRead) {
  const auto null = HostFs().Device("/dev/null");
  ASSERT_THAT(null, IsOk());
  EXPECT_EQ(null->major, 1U);
  EXPECT_EQ(null->minor, 3U);
}

TEST_F(HostFsTest, UnderATestRootDevListStandsForNodesThatCannotBeMade) {
  dir_.Write("dev.list",
             "/dev/nvidia0 c 195 0 0666 44\n"
             "/dev/nvidia-caps/nvidia-cap1  c 235 1 0400 0\n");
  EXPECT_THAT(fs_.Device("/dev/nvidia0"),
              IsOkAnd(DeviceNode{.major = 195, .minor = 0, .mode = 0666, .gid = 44}));
  EXPECT_THAT(fs_.Device("dev/nvidia-caps/../nvidia-caps/nvidia-cap1"),
              IsOkAnd(DeviceNode{.major = 235, .minor = 1, .mode = 0400, .gid = 0}));
  EXPECT_THAT(fs_.Device("/dev/nvidia1"), IsError(Code::kNotFound));
}

TEST_F(HostFsTest, AFileThatIsNoDeviceIsInvalid) {
  dir_.Write("dev/nvidia0", "");
  EXPECT_THAT(fs_.Device("/dev/nvidia0"), IsError(Code::kInvalidArgument));
}

TEST_F(HostFsTest, ListsTheDevicesOfAFolder) {
  dir_.Write("dev/plain", "");
  dir_.Write("dev.list",
             "/dev/nvidia1 c 195 1 0666 0\n/dev/nvidia0 c 195 0 0666 0\n/dev/dri/card0 c 226 0 "
             "0660 44\n");
  EXPECT_THAT(fs_.Devices("/dev"), ElementsAre("nvidia0", "nvidia1"));
  EXPECT_THAT(fs_.Devices("/dev/dri"), ElementsAre("card0"));
  EXPECT_THAT(fs_.Devices("/none"), ElementsAre());
  EXPECT_THAT(HostFs().Devices("/dev"), testing::Contains("null"));
}

TEST_F(HostFsTest, AWrongDevListLineIsNamed) {
  dir_.Write("dev.list", "/dev/a c 1 1 0666 0\n/dev/nvidia0 b 195 0 0666 0\n");
  EXPECT_THAT(fs_.Device("/dev/nvidia0"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("dev.list line 2")));
}

}  // namespace
}  // namespace ndp::os
