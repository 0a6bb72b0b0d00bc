#include "os/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "testing/result_matchers.h"
#include "testing/temp_dir.h"

namespace ndp::os {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

mode_t ModeOf(const std::filesystem::path& path) {
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(AtomicWriteFileTest, WritesContentAndModeWhateverTheUmask) {
  const TempDir dir;
  const mode_t before = umask(077);
  EXPECT_THAT(AtomicWriteFile(dir / "f", "text", {.mode = 0644}), IsOkAnd(true));
  umask(before);
  EXPECT_EQ(dir.Read("f"), "text");
  EXPECT_EQ(ModeOf(dir / "f"), 0644U);
}

TEST(AtomicWriteFileTest, SameContentIsLeftUntouched) {
  const TempDir dir;
  ASSERT_THAT(AtomicWriteFile(dir / "f", "text"), IsOkAnd(true));
  const auto before = Identify(dir / "f");
  EXPECT_THAT(AtomicWriteFile(dir / "f", "text"), IsOkAnd(false));
  EXPECT_EQ(*Identify(dir / "f"), *before);
  EXPECT_THAT(AtomicWriteFile(dir / "f", "text", {.mode = 0600}), IsOkAnd(true));
  EXPECT_THAT(AtomicWriteFile(dir / "f", "next", {.mode = 0600, .sync = true}), IsOkAnd(true));
  EXPECT_EQ(dir.Read("f"), "next");
}

TEST(MakeFolderTest, EachMissingOneIsForAllToReadWhateverTheUmask) {
  const TempDir dir;
  const mode_t before = umask(077);
  EXPECT_THAT(MakeFolder(dir / "etc/cdi/"), IsOk());
  umask(before);
  EXPECT_EQ(ModeOf(dir / "etc"), 0755U);
  EXPECT_EQ(ModeOf(dir / "etc/cdi"), 0755U);
}

TEST(MakeFolderTest, OneThatIsThereStaysAsItIs) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "etc/cdi");
  ASSERT_EQ(chmod((dir / "etc/cdi").c_str(), 0700), 0);
  EXPECT_THAT(MakeFolder(dir / "etc/cdi"), IsOk());
  EXPECT_EQ(ModeOf(dir / "etc/cdi"), 0700U);
}

TEST(MakeFolderTest, AFileInTheWayIsNamed) {
  const TempDir dir;
  ASSERT_THAT(AtomicWriteFile(dir / "etc", "x"), IsOkAnd(true));
  EXPECT_THAT(MakeFolder(dir / "etc/cdi"),
              IsErrorThat(Code::kInternal, HasSubstr("make folder " + (dir / "etc").string())));
}

TEST(AtomicWriteFileTest, AFailureLeavesNothingBehindAndNamesTheFile) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "f" / "inside");
  EXPECT_THAT(AtomicWriteFile(dir / "f", "x"),
              IsErrorThat(Code::kInternal, HasSubstr((dir / "f").string())));
  EXPECT_THAT(AtomicWriteFile(dir / "missing/f", "x"), IsError(Code::kNotFound));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

// The name goes on meaning the same.
TEST(WriteNamedFileTest, LinksAreFollowed) {
  const TempDir dir;
  dir.Write("target", "old");
  std::filesystem::create_symlink("target", dir / "link");
  ASSERT_THAT(WriteNamedFile(dir / "link", "new"), IsOk());
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_EQ(dir.Read("target"), "new");

  std::filesystem::create_symlink(dir / "made/later", dir / "dangling");
  ASSERT_THAT(WriteNamedFile(dir / "dangling", "new"), IsOk());
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "dangling"));
  EXPECT_EQ(dir.Read("made/later"), "new");

  std::filesystem::create_symlink("loop", dir / "loop");
  EXPECT_THAT(WriteNamedFile(dir / "loop", "new"),
              IsErrorThat(Code::kInternal, HasSubstr((dir / "loop").string())));
}

TEST(WriteNamedFileTest, APipeIsWrittenInto) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  const UniqueFd reader(open((dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::filesystem::create_symlink("pipe", dir / "link");
  ASSERT_THAT(WriteNamedFile(dir / "link", "text"), IsOk());
  EXPECT_TRUE(std::filesystem::is_fifo(std::filesystem::symlink_status(dir / "pipe")));
  std::array<char, 16> got{};
  EXPECT_EQ(read(reader.get(), got.data(), got.size()), 4);
  EXPECT_STREQ(got.data(), "text");
}

// As /dev/stdout is one, also where it is a file that has something in it or has been removed.
TEST(WriteNamedFileTest, ADescriptorIsWrittenInto) {
  const TempDir dir;
  dir.Write("log", "before\n");
  const UniqueFd log(open((dir / "log").c_str(), O_RDWR | O_CLOEXEC));
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(log.get()), dir / "stdout");
  ASSERT_THAT(WriteNamedFile(dir / "stdout", "text"), IsOk());
  EXPECT_EQ(dir.Read("log"), "before\ntext");
  std::filesystem::remove(dir / "log");
  ASSERT_THAT(WriteNamedFile(dir / "stdout", "more"), IsOk());
  EXPECT_EQ(lseek(log.get(), 0, SEEK_END), 15);
  EXPECT_FALSE(std::filesystem::exists(dir / "log"));
}

TEST(FileLockTest, OneHolderAtATime) {
  const TempDir dir;
  {
    const auto first = FileLock::Acquire(dir / "lock");
    ASSERT_THAT(first, IsOk());
    EXPECT_THAT(FileLock::Acquire(dir / "lock"),
                IsErrorThat(Code::kUnavailable, HasSubstr("held by another")));
  }
  EXPECT_THAT(FileLock::Acquire(dir / "lock"), IsOk());
}

TEST(FileLockTest, AFoldersIsWaitedForAsLongAsAsked) {
  const TempDir dir;
  auto first = std::make_unique<Result<FileLock>>(FileLock::OfFolder(dir.path(), Duration::zero()));
  ASSERT_THAT(*first, IsOk());
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  EXPECT_THAT(FileLock::OfFolder(dir.path(), 5ms),
              IsErrorThat(Code::kUnavailable, HasSubstr("held by another")));
  std::thread holder([&first] {
    std::this_thread::sleep_for(20ms);
    first.reset();
  });
  EXPECT_THAT(FileLock::OfFolder(dir.path(), 1min), IsOk());
  holder.join();
  EXPECT_THAT(FileLock::OfFolder(dir / "none", 1min), IsError(Code::kNotFound));
}

TEST(IdentifyTest, AReplacedFileIsAnother) {
  const TempDir dir;
  dir.Write("f", "1");
  const auto before = Identify(dir / "f");
  ASSERT_THAT(AtomicWriteFile(dir / "f", "2"), IsOkAnd(true));
  EXPECT_NE(*Identify(dir / "f"), *before);
  EXPECT_THAT(Identify(dir / "g"), IsError(Code::kNotFound));
}

}  // namespace
}  // namespace ndp::os
