#include "sim_state/sessions.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "testing/result_matchers.h"

namespace ndp::sim_state {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class SessionsTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ndp-sim-sessions-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    dir_ = folder;
    auto machine = Machine::Create(dir_ / "state");
    ASSERT_THAT(machine, IsOk());
    machine_ = *machine;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::filesystem::path dir_;
  std::shared_ptr<Machine> machine_;
};

TEST_F(SessionsTest, AProcessKeepsItsEntry) {
  Client* first = ClaimClient(*machine_);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(ClaimClient(*machine_), first);
  EXPECT_EQ(first->pid.load(), static_cast<std::uint32_t>(getpid()));
}

TEST_F(SessionsTest, ASessionCountsWhileItsLockIsHeld) {
  Client* client = ClaimClient(*machine_);
  client->attached.store(0b101);
  EXPECT_THAT(OpenSessions(*machine_), IsEmpty());
  SessionLock lock;
  ASSERT_THAT(lock.Open(*machine_, client), IsOk());
  const auto sessions = OpenSessions(*machine_);
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(sessions[0].attached, 0b101U);
  lock.Close();
  EXPECT_THAT(OpenSessions(*machine_), IsEmpty());
}

TEST_F(SessionsTest, AKilledProcessHasNoSessionAnyMore) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    SessionLock lock;
    const bool opened = lock.Open(*machine_, ClaimClient(*machine_)).ok();
    (void)write(ready[1], opened ? "y" : "n", 1);
    pause();
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_THAT(OpenSessions(*machine_), SizeIs(1));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(OpenSessions(*machine_), IsEmpty());
  // It is remembered, for its calls.
  const auto clients = CallsByClient(*machine_);
  ASSERT_THAT(clients, SizeIs(1));
  EXPECT_FALSE(clients[0].alive);
  close(ready[0]);
  close(ready[1]);
}

// A driver root is often mounted read-only. Such a client must still see changes, and count as a
// session.
TEST_F(SessionsTest, AClientThatMayOnlyReadSeesChangesAndHoldsASession) {
  if (geteuid() != 0) GTEST_SKIP() << "needs another user's process";
  std::filesystem::permissions(dir_, std::filesystem::perms(0755));
  std::filesystem::permissions(dir_ / "state", std::filesystem::perms(0644));
  int to_child[2];
  int from_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(from_child), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    const auto machine = Machine::Open(dir_ / "state");
    if (!machine.ok() || (*machine)->writable()) _exit(3);
    Client* client = ClaimClient(**machine);
    SessionLock lock;
    if (!lock.Open(**machine, client).ok()) _exit(4);
    char go = 0;
    if (write(from_child[1], "r", 1) != 1 || read(to_child[0], &go, 1) != 1) _exit(5);
    _exit((*machine)->control().gpu_count == 6 ? 0 : 6);
  }
  char ready = 0;
  ASSERT_EQ(read(from_child[0], &ready, 1), 1);
  const auto sessions = OpenSessions(*machine_);
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(sessions[0].attached, 0xFFFFFFFFU);
  ASSERT_THAT(machine_->Write([](Control& control) {
    control.gpu_count = 6;
    return Status();
  }),
              IsOk());
  ASSERT_EQ(write(to_child[1], "g", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const int fd : {to_child[0], to_child[1], from_child[0], from_child[1]}) close(fd);
}

TEST_F(SessionsTest, EntriesOfTheDeadAreUsedAgain) {
  for (auto& client : machine_->clients().clients) {
    client.used.store(1);
    client.pid.store(0x7FFFFFFF);  // beyond every pid there is
  }
  EXPECT_NE(ClaimClient(*machine_), nullptr);
}

}  // namespace
}  // namespace ndp::sim_state
