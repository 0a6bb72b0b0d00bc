#include "os/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "os/dynamic_library.h"
#include "testing/result_matchers.h"
#include "testing/run_until.h"
#include "testing/temp_dir.h"

namespace ndp::os {
namespace {

using testing::HasSubstr;

class ProcessTest : public testing::Test {
 protected:
  Result<ExitStatus> RunToEnd(const SpawnOptions& options) {
    std::optional<ExitStatus> status;
    NDP_TRY(auto child, Spawn(*loop_, options, [&](ExitStatus s) { status = s; }));
    if (!RunUntil(*loop_, [&] { return status.has_value(); })) {
      return Error(Code::kDeadlineExceeded, "child still runs");
    }
    EXPECT_FALSE(child->running());
    return *status;
  }

  TempDir dir_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
};

TEST_F(ProcessTest, ReportsTheExitCode) {
  const auto status = RunToEnd({.argv = {"sh", "-c", "exit 3"}});
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->Text(), "exit code 3");
  EXPECT_FALSE(status->ok());
}

TEST_F(ProcessTest, ReportsTheSignal) {
  const auto status = RunToEnd({.argv = {"sh", "-c", "kill -9 $$"}});
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->Text(), "signal 9 (Killed)");
}

TEST_F(ProcessTest, GivesTheEnvironmentAndTheDescriptors) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ASSERT_THAT(RunToEnd({.argv = {"/bin/sh", "-c", "echo $A$HOME; cat"},
                        .environment = std::vector<std::string>{"A=b"},
                        .stdout_fd = writer.get()}),
              IsOk());
  writer.Reset();
  char text[64] = {};
  EXPECT_EQ(read(reader.get(), text, sizeof text - 1), 2);
  EXPECT_STREQ(text, "b\n");
}

TEST_F(ProcessTest, TheChildStartsWithNoSignalBlocked) {
  BlockSignals({SIGTERM});
  std::optional<ExitStatus> status;
  auto child = Spawn(*loop_, {.argv = {"sleep", "1000"}, .own_group = true},
                     [&](ExitStatus s) { status = s; });
  ASSERT_THAT(child, IsOk());
  (*child)->Signal(SIGTERM);
  ASSERT_TRUE(RunUntil(*loop_, [&] { return status.has_value(); }));
  EXPECT_EQ(status->signal, SIGTERM);
}

TEST_F(ProcessTest, OnExitMayDestroyTheChild) {
  std::unique_ptr<Child> child;
  bool ended = false;
  child = Spawn(*loop_, {.argv = {"true"}}, [&](ExitStatus) {
            child.reset();
            ended = true;
          }).value();
  EXPECT_TRUE(RunUntil(*loop_, [&] { return ended; }));
}

TEST_F(ProcessTest, DestroyingARunningChildKillsIt) {
  auto child = Spawn(*loop_, {.argv = {"sleep", "1000"}}, [](ExitStatus) { FAIL(); });
  ASSERT_THAT(child, IsOk());
  const pid_t pid = (*child)->pid();
  child->reset();
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(ProcessTest, AMissingProgramIsNotFound) {
  EXPECT_THAT(RunToEnd({.argv = {"/no/such/program"}}),
              IsErrorThat(Code::kNotFound, HasSubstr("/no/such/program")));
}

TEST(DynamicLibraryTest, FindsSymbolsAndTheRealFile) {
  const auto libm = DynamicLibrary::Open("libm.so.6");
  ASSERT_THAT(libm, IsOk());
  auto* cosine = libm->Symbol<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_EQ(libm->Symbol<void()>("no_such_symbol"), nullptr);
  EXPECT_TRUE(libm->path().is_absolute());
}

TEST(DynamicLibraryTest, TheLoadersOwnWordsAreKept) {
  const TempDir dir;
  EXPECT_THAT(DynamicLibrary::Open("libno-such.so.1"),
              IsErrorThat(Code::kNotFound, HasSubstr("cannot open shared object file")));
  EXPECT_THAT(DynamicLibrary::Open(dir.Write("lib.so", "text")),
              IsErrorThat(Code::kNotFound, HasSubstr("file too short")));
}

}  // namespace
}  // namespace ndp::os
