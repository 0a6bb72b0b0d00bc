#include "os/dir_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "os/unix_socket.h"
#include "testing/run_until.h"
#include "testing/temp_dir.h"

namespace ndp::os {
namespace {

using Change = DirWatch::Change;

constexpr Duration kPoll = std::chrono::milliseconds(2);

class DirWatchTest : public testing::Test {
 protected:
  std::unique_ptr<DirWatch> Open(const std::filesystem::path& folder) {
    return DirWatch::Open(
        *loop_, folder,
        [this](Change change, std::string_view name) { seen_.emplace_back(change, name); }, kPoll);
  }
  // Whether the change comes; forgets what came before it.
  bool Sees(Change change, const std::string& name = "") {
    const bool found = RunUntil(
        *loop_, [&] { return std::ranges::find(seen_, std::pair(change, name)) != seen_.end(); });
    seen_.clear();
    return found;
  }

  TempDir dir_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  std::vector<std::pair<Change, std::string>> seen_;
};

TEST_F(DirWatchTest, ReportsFilesThatComeAreWrittenAndGo) {
  const auto watch = Open(dir_.path());
  EXPECT_TRUE(watch->watching());
  dir_.Write("a", "x");
  EXPECT_TRUE(Sees(Change::kWritten, "a"));
  std::filesystem::rename(dir_ / "a", dir_ / "b");
  EXPECT_TRUE(Sees(Change::kMovedIn, "b"));
  std::filesystem::remove(dir_ / "b");
  EXPECT_TRUE(Sees(Change::kVanished, "b"));
}

TEST_F(DirWatchTest, AMissingFolderIsWaitedForAtItsNearestAncestor) {
  const auto watch = Open(dir_ / "x/y/");
  EXPECT_FALSE(watch->watching());
  std::filesystem::create_directories(dir_ / "x/y");
  EXPECT_TRUE(Sees(Change::kLookAgain));
  EXPECT_TRUE(watch->watching());
  dir_.Write("x/y/a", "");
  EXPECT_TRUE(Sees(Change::kCreated, "a"));
}

TEST_F(DirWatchTest, AFolderThatIsRemovedAndMadeAgainIsWatchedAgain) {
  std::filesystem::create_directory(dir_ / "x");
  const auto watch = Open(dir_ / "x");
  for (int round = 0; round < 2; ++round) {
    std::filesystem::remove_all(dir_ / "x");
    EXPECT_TRUE(Sees(Change::kLookAgain));
    EXPECT_FALSE(watch->watching());
    std::filesystem::create_directory(dir_ / "x");
    EXPECT_TRUE(Sees(Change::kLookAgain));
    dir_.Write("x/a", "");
    EXPECT_TRUE(Sees(Change::kCreated, "a"));
  }
}

TEST_F(DirWatchTest, AFolderThatASocketHoldsIsMissedAllTheSame) {
  std::filesystem::create_directory(dir_ / "x");
  auto socket = UnixSocketFile::Open(dir_ / "x/s", 0600);
  ASSERT_TRUE(socket.ok());
  const auto watch = Open(dir_ / "x");
  std::filesystem::remove_all(dir_ / "x");
  EXPECT_TRUE(Sees(Change::kLookAgain));
  EXPECT_FALSE(watch->watching());
  std::filesystem::create_directory(dir_ / "x");
  EXPECT_TRUE(Sees(Change::kLookAgain));
  EXPECT_TRUE(watch->watching());
  dir_.Write("x/a", "");
  EXPECT_TRUE(Sees(Change::kCreated, "a"));
}

TEST_F(DirWatchTest, AFolderThatIsReplacedByAnotherIsFollowed) {
  std::filesystem::create_directory(dir_ / "x");
  std::filesystem::create_directory(dir_ / "new");
  const auto watch = Open(dir_ / "x");
  std::filesystem::rename(dir_ / "x", dir_ / "old");
  std::filesystem::rename(dir_ / "new", dir_ / "x");
  EXPECT_TRUE(Sees(Change::kLookAgain));
  ASSERT_TRUE(watch->watching());
  dir_.Write("old/a", "");
  dir_.Write("x/b", "");
  EXPECT_TRUE(Sees(Change::kCreated, "b"));
}

TEST_F(DirWatchTest, TheCallbackMayDestroyTheWatch) {
  std::unique_ptr<DirWatch> watch;
  bool called = false;
  watch = DirWatch::Open(*loop_, dir_.path(), [&](Change, std::string_view) {
    watch.reset();
    called = true;
  });
  dir_.Write("a", "x");
  dir_.Write("b", "x");
  EXPECT_TRUE(RunUntil(*loop_, [&] { return called; }));
}

// No further descriptor can be opened while this lives: for inotify the same error as that of its
// own limit.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(STDERR_FILENO);
    close(next);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(DirWatchTest, WithoutInotifyItAsksToLookAgainUntilItWorks) {
  std::unique_ptr<DirWatch> watch;
  {
    const NoDescriptors none;
    watch = Open(dir_.path());
    EXPECT_THAT(watch->trouble(), testing::AllOf(testing::HasSubstr(dir_.path().string()),
                                                 testing::HasSubstr("max_user_instances")));
    EXPECT_FALSE(watch->watching());
    for (int poll = 0; poll < 2; ++poll) {
      seen_.clear();
      EXPECT_TRUE(Sees(Change::kLookAgain));
    }
    EXPECT_NE(watch->trouble(), "");
  }
  EXPECT_TRUE(RunUntil(*loop_, [&] { return watch->trouble().empty(); }));
  EXPECT_TRUE(Sees(Change::kLookAgain));  // for what happened before
  EXPECT_TRUE(watch->watching());
  dir_.Write("a", "x");
  EXPECT_TRUE(Sees(Change::kWritten, "a"));
}

TEST_F(DirWatchTest, APollMayDestroyTheWatch) {
  std::unique_ptr<DirWatch> watch;
  const NoDescriptors none;
  watch =
      DirWatch::Open(*loop_, dir_.path(), [&](Change, std::string_view) { watch.reset(); }, kPoll);
  EXPECT_TRUE(RunUntil(*loop_, [&] { return watch == nullptr; }));
}

}  // namespace
}  // namespace ndp::os
