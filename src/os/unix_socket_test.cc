#include "os/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "testing/result_matchers.h"
#include "testing/run_until.h"
#include "testing/temp_dir.h"

namespace ndp::os {
namespace {

class UnixSocketTest : public testing::Test {
 protected:
  std::unique_ptr<UnixListener> Open(std::string_view name = "s") {
    auto listener = UnixListener::Open(*loop_, {.path = dir_ / name}, [this](UniqueFd connection) {
      accepted_.push_back(std::move(connection));
    });
    EXPECT_THAT(listener, IsOk());
    return std::move(listener).value();
  }
  bool RunUntilAccepted(std::size_t count) {
    return RunUntil(*loop_, [&] { return accepted_.size() == count; });
  }

  TempDir dir_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  std::vector<UniqueFd> accepted_;
};

TEST_F(UnixSocketTest, HandsOutConnectedDescriptors) {
  const auto listener = Open();
  const auto client = ConnectUnix(dir_ / "s");
  ASSERT_THAT(client, IsOk());
  ASSERT_TRUE(RunUntilAccepted(1));
  ASSERT_EQ(write(client->get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(accepted_[0].get(), &byte, 1), 1);
}

TEST_F(UnixSocketTest, TheFileHasItsModeAndNoOtherFileIsLeft) {
  const auto listener =
      UnixListener::Open(*loop_, {.path = dir_ / "s", .mode = 0660}, [](UniqueFd) {});
  ASSERT_THAT(listener, IsOk());
  struct stat info{};
  ASSERT_EQ(stat((dir_ / "s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 1);
}

TEST_F(UnixSocketTest, ARemovedFileIsPutBackAndOldConnectionsLive) {
  const auto listener = Open();
  const auto before = ConnectUnix(dir_ / "s");
  ASSERT_TRUE(RunUntilAccepted(1));
  const auto waiting = ConnectUnix(dir_ / "s");
  std::filesystem::remove(dir_ / "s");
  EXPECT_FALSE(listener->Intact());

  EXPECT_THAT(listener->PutBack(), IsOk());
  EXPECT_TRUE(listener->Intact());
  EXPECT_EQ(accepted_.size(), 2U) << "the connection that still waited is handed out";
  const auto after = ConnectUnix(dir_ / "s");
  ASSERT_THAT(after, IsOk());
  ASSERT_TRUE(RunUntilAccepted(3));
  ASSERT_EQ(write(accepted_[0].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(before->get(), &byte, 1), 1);
}

TEST_F(UnixSocketTest, PuttingBackAnIntactFileChangesNothing) {
  const auto listener = Open();
  const auto before = Identify(dir_ / "s");
  EXPECT_THAT(listener->PutBack(), IsOk());
  EXPECT_EQ(*Identify(dir_ / "s"), *before);
}

TEST_F(UnixSocketTest, TheEndRemovesOnlyOurOwnFile) {
  auto first = Open();
  const auto second = Open();  // took the path over
  EXPECT_FALSE(first->Intact());
  first.reset();
  EXPECT_TRUE(second->Intact());
  EXPECT_THAT(ConnectUnix(dir_ / "s"), IsOk());
}

TEST_F(UnixSocketTest, TheEndRemovesTheFile) {
  Open().reset();
  EXPECT_FALSE(std::filesystem::exists(dir_ / "s"));
  auto listener = Open();
  listener->LeaveFile();
  listener.reset();
  EXPECT_TRUE(std::filesystem::exists(dir_ / "s"));
}

TEST_F(UnixSocketTest, AcceptingMayDestroyTheListener) {
  std::unique_ptr<UnixListener> listener;
  bool accepted = false;
  listener = UnixListener::Open(*loop_, {.path = dir_ / "s"}, [&](UniqueFd) {
               listener.reset();
               accepted = true;
             }).value();
  const auto client = ConnectUnix(dir_ / "s");
  EXPECT_TRUE(RunUntil(*loop_, [&] { return accepted; }));
}

TEST_F(UnixSocketTest, PathsBeyond107CharactersWork) {
  const std::string folder(120, 'd');
  std::filesystem::create_directory(dir_ / folder);
  const auto listener = Open(folder + "/s");
  const auto client = ConnectUnix(dir_ / (folder + "/s"));
  ASSERT_THAT(client, IsOk());
  EXPECT_TRUE(RunUntilAccepted(1));
}

TEST_F(UnixSocketTest, EachFailureHasItsCode) {
  EXPECT_THAT(ConnectUnix(dir_ / "none"), IsError(Code::kNotFound));
  auto listener = Open();
  listener->LeaveFile();
  listener.reset();
  EXPECT_THAT(ConnectUnix(dir_ / "s"),
              IsErrorThat(Code::kUnavailable, testing::HasSubstr("refused")));
  dir_.Write("file", "");
  EXPECT_THAT(ConnectUnix(dir_ / "file"),
              IsErrorThat(Code::kUnavailable, testing::HasSubstr("file: a file, want a socket")));
  EXPECT_THAT(ConnectUnix(dir_.path()),
              IsErrorThat(Code::kUnavailable, testing::HasSubstr("a folder, want a socket")));
  EXPECT_THAT(UnixListener::Open(*loop_, {.path = dir_ / "none/s"}, [](UniqueFd) {}),
              IsErrorThat(Code::kNotFound, testing::HasSubstr("none/s")));
}

TEST_F(UnixSocketTest, WantOfDescriptorsIsSaidOnceAndEnds) {
  const auto listener = Open();
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 3; ++i) {
    auto client = ConnectUnix(dir_ / "s");
    ASSERT_THAT(client, IsOk());
    clients.push_back(*std::move(client));
  }
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  testing::internal::CaptureStderr();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int pauses = 0;  // each is longer than the one between two tries
  EventLoop::Handle timer = loop_->Every(std::chrono::milliseconds(150), [&] { ++pauses; });
  EXPECT_TRUE(RunUntil(*loop_, [&] { return pauses == 3; }));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(RunUntilAccepted(3));
  const std::string said = testing::internal::GetCapturedStderr();
  const auto first = said.find("cannot accept");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(said.find("cannot accept", first + 1), std::string::npos) << said;
}

TEST_F(UnixSocketTest, TheIdentityIsOfTheFileThatWasConnectedTo) {
  // A listener is replaced again and again, and tells each connection its number.
  const auto path = dir_ / "s";
  std::vector<FileIdentity> files;
  std::mutex mutex;
  std::atomic<bool> stop = false;
  std::thread replacing([&] {
    while (!stop) {
      auto file = UnixSocketFile::Open(path, 0600);
      ASSERT_THAT(file, IsOk());
      file->LeaveFile();
      const std::lock_guard lock(mutex);
      files.push_back(Identify(path).value());
      const auto number = static_cast<std::uint32_t>(files.size() - 1);
      while (const UniqueFd client{accept4(file->fd(), nullptr, nullptr, SOCK_CLOEXEC)}) {
        // Fails where the other side has looked away, since the file was replaced.
        send(client.get(), &number, sizeof number, MSG_NOSIGNAL);
      }
    }
  });
  int told = 0;
  for (int i = 0; i < 20'000 && told < 200; ++i) {
    const auto connection = ConnectUnixIdentified(path);
    if (!connection.ok()) continue;
    pollfd ready{.fd = connection->fd.get(), .events = POLLIN, .revents = 0};
    poll(&ready, 1, 10'000);
    std::uint32_t number = 0;
    if (read(connection->fd.get(), &number, sizeof number) != sizeof number) continue;
    ++told;
    const std::lock_guard lock(mutex);
    EXPECT_EQ(connection->file, files.at(number));
  }
  stop = true;
  replacing.join();
  EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace ndp::os
