#include "node/file_watch.h"

#include <gtest/gtest.h>

#include <fstream>

namespace ndp::node {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

class FileWatchTest : public testing::Test {
 protected:
  FileWatchTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    loop_ = *os::EventLoop::Create();
  }
  ~FileWatchTest() override { fs::remove_all(folder_); }

  void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  // Runs the loop until the callback or, where none is expected, a while.
  int RunUntilChanged(const fs::path& file, const std::function<void()>& act, Duration most = 5s) {
    int changes = 0;
    auto watch = FileWatch::Open(*loop_, file, [&] {
      ++changes;
      loop_->Stop();
    });
    loop_->Post([&] { act(); });
    auto limit = loop_->After(most, [&] { loop_->Stop(); });
    loop_->Run();
    return changes;
  }

  fs::path folder_;
  std::unique_ptr<os::EventLoop> loop_;
};

TEST_F(FileWatchTest, SeesARename) {
  Write(folder_ / "a.yaml", "old");
  EXPECT_EQ(RunUntilChanged(folder_ / "a.yaml",
                            [&] {
                              Write(folder_ / "new", "new");
                              fs::rename(folder_ / "new", folder_ / "a.yaml");
                            }),
            1);
}

TEST_F(FileWatchTest, SeesASwappedConfigMapFolder) {
  fs::create_directories(folder_ / "..1");
  fs::create_directories(folder_ / "..2");
  Write(folder_ / "..1/config.yaml", "old");
  Write(folder_ / "..2/config.yaml", "new");
  fs::create_directory_symlink("..1", folder_ / "..data");
  fs::create_symlink("..data/config.yaml", folder_ / "config.yaml");
  EXPECT_EQ(RunUntilChanged(folder_ / "config.yaml",
                            [&] {
                              fs::create_directory_symlink("..2", folder_ / "..tmp");
                              fs::rename(folder_ / "..tmp", folder_ / "..data");
                            }),
            1);
}

TEST_F(FileWatchTest, TheSameContentIsNoChange) {
  Write(folder_ / "a.yaml", "same");
  EXPECT_EQ(
      RunUntilChanged(folder_ / "a.yaml", [&] { Write(folder_ / "a.yaml", "same"); }, 200ms), 0);
}

TEST_F(FileWatchTest, AFileThatAppearsOrGoesIsAChange) {
  EXPECT_EQ(RunUntilChanged(folder_ / "a.yaml", [&] { Write(folder_ / "a.yaml", "x"); }), 1);
  EXPECT_EQ(RunUntilChanged(folder_ / "a.yaml", [&] { fs::remove(folder_ / "a.yaml"); }), 1);
}

}  // namespace
}  // namespace ndp::node
