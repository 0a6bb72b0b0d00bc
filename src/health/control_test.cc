#include "health/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <future>

#include "testing/result_matchers.h"
#include "testing/run_until.h"
#include "testing/temp_dir.h"

namespace ndp::health {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Command = ControlRequest::Command;

TEST(ControlRequestTest, GoesThereAndBack) {
  for (const ControlRequest& request :
       {ControlRequest{}, ControlRequest{.command = Command::kClear, .gpu = "GPU-a"},
        ControlRequest{.command = Command::kRelease, .for_time = 120s},
        ControlRequest{.command = Command::kResume}}) {
    EXPECT_THAT(ParseControlRequest(ControlRequestLine(request)), IsOkAnd(request));
  }
}

TEST(ControlRequestTest, WhatIsWrongIsSaid) {
  const auto fails = [](std::string_view line, std::string_view message) {
    EXPECT_THAT(ParseControlRequest(line),
                IsErrorThat(Code::kInvalidArgument, HasSubstr(std::string(message))));
  };
  fails("nonsense", "request");
  fails("{}", "unknown command ''");
  fails(R"({"command":"reboot"})", "unknown command 'reboot': health, clear");
  fails(R"({"command":"clear"})", "name a GPU");
  fails(R"({"command":"release","for":"soon"})", "release: for");
  fails(R"({"command":"release","for":"0s"})", "above 0");
}

class ControlTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = os::EventLoop::Create();
    ASSERT_THAT(loop, IsOk());
    loop_ = std::move(*loop);
    ticks_ = loop_->Every(1ms, [] {});  // what another thread does wakes nobody
  }
  std::unique_ptr<ControlServer> Open() {
    auto server = ControlServer::Open(
        *loop_, dir_.path(),
        [this](const ControlRequest& request, const ControlServer::Answer& answer) {
          requests_.push_back(request);
          if (later_) {
            answer_ = answer;
            return;
          }
          doc::Value ok = doc::Value::Map();
          ok.Set("ok", true);
          answer(ok);
        });
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }
  // As the command line does: in a program of its own, here a thread.
  Result<doc::Value> AskAside(const std::filesystem::path& socket, const ControlRequest& request,
                              Duration limit = 10s) {
    auto answer =
        std::async(std::launch::async, [&] { return Ask(socket, request, clock_, limit); });
    EXPECT_TRUE(
        RunUntil(*loop_, [&] { return answer.wait_for(0s) == std::future_status::ready; }, 20s));
    return answer.get();
  }

  TempDir dir_;
  SystemClock clock_;
  std::unique_ptr<os::EventLoop> loop_;
  os::EventLoop::Handle ticks_;
  std::vector<ControlRequest> requests_;
  bool later_ = false;
  ControlServer::Answer answer_;
};

TEST_F(ControlTest, AnswersOneRequest) {
  const auto server = Open();
  const auto answer = AskAside(server->path(), {.command = Command::kClear, .gpu = "3"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->Find("ok")->AsBool(), true);
  EXPECT_THAT(requests_, ElementsAre(ControlRequest{.command = Command::kClear, .gpu = "3"}));
}

TEST_F(ControlTest, OnlyItsOwnerMayConnect) {
  const auto server = Open();
  struct stat status{};
  ASSERT_EQ(stat(server->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  ASSERT_EQ(stat((dir_ / ".ndp").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(ControlTest, EachInstanceHasItsSocketAndTheDeadAreRemoved) {
  const auto one = Open();
  dir_.Write(".ndp/note", "not a socket");
  {
    // A socket whose program was killed.
    auto dead = os::UnixSocketFile::Open(dir_ / ".ndp/1-dead.sock", 0600);
    ASSERT_THAT(dead, IsOk());
    dead->LeaveFile();
  }
  EXPECT_THAT(ControlSockets(dir_.path()), IsOkAnd(SizeIs(2)));
  const auto two = Open();
  EXPECT_THAT(ControlSockets(dir_.path()), IsOkAnd(SizeIs(2)));
  EXPECT_NE(one->path(), two->path());
}

TEST_F(ControlTest, AnAnswerMayComeLater) {
  later_ = true;
  const auto server = Open();
  const auto timer =
      loop_->After(20ms, [&] { answer_(ControlError(Error(Code::kInternal, "x"))); });
  const auto answer = AskAside(server->path(), {.command = Command::kRelease});
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->Find("error")->AsString(), "x");
}

TEST_F(ControlTest, AnAnswerForAServerThatHasGoneIsDropped) {
  later_ = true;
  auto server = Open();
  auto path = server->path();
  const auto timer = loop_->After(30ms, [&] {
    server.reset();
    answer_(doc::Value::Map());
  });
  EXPECT_THAT(AskAside(path, {.command = Command::kRelease}), IsError(Code::kUnavailable));
}

TEST_F(ControlTest, NoAnswerInTimeIsAnError) {
  later_ = true;
  const auto server = Open();
  EXPECT_THAT(AskAside(server->path(), {}, 20ms), IsError(Code::kDeadlineExceeded));
}

TEST_F(ControlTest, OneClientTooManyIsToldSo) {
  const auto server = Open();
  std::vector<os::UniqueFd> clients;
  for (int i = 0; i < 16; ++i) {
    auto client = os::ConnectUnix(server->path());
    ASSERT_THAT(client, IsOk());
    clients.push_back(*std::move(client));
  }
  const auto refused = AskAside(server->path(), {});
  ASSERT_THAT(refused, IsOk());
  EXPECT_THAT(refused->Find("error")->Text(), HasSubstr("16 clients"));
  clients.clear();
  EXPECT_TRUE(RunUntil(*loop_, [&] {
    const auto answer = AskAside(server->path(), {});
    return answer.ok() && answer->Find("error") == nullptr;
  }));
}

TEST_F(ControlTest, NobodyThereIsUnavailableOrNotFound) {
  EXPECT_THAT(Ask(dir_ / "none.sock", {}, clock_, 1s), IsError(Code::kNotFound));
  EXPECT_THAT(ControlSockets(dir_.path()), IsOkAnd(IsEmpty()));
}

TEST_F(ControlTest, GarbageGetsAnErrorAndAFloodIsCut) {
  const auto server = Open();
  const auto say = [&](const std::string& text) {
    auto fd = os::ConnectUnix(server->path());
    EXPECT_THAT(fd, IsOk());
    (void)send(fd->get(), text.data(), text.size(), MSG_NOSIGNAL);
    std::string answer;
    EXPECT_TRUE(RunUntil(*loop_, [&] {
      char buffer[4096];
      const ssize_t got = recv(fd->get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) answer.append(buffer, static_cast<std::size_t>(got));
      return got == 0 || (got < 0 && errno == ECONNRESET);
    }));
    return answer;
  };
  EXPECT_THAT(say("nonsense\n"), HasSubstr(R"("ok":false)"));
  EXPECT_EQ(say(std::string(10'000, 'x')), "");
  EXPECT_THAT(requests_, IsEmpty());
}

}  // namespace
}  // namespace ndp::health
