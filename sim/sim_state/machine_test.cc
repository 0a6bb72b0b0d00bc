#include "sim_state/machine.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "testing/result_matchers.h"

namespace ndp::sim_state {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kSecond = 1'000'000'000;

class MachineTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ndp-sim-state-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    dir_ = folder;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::shared_ptr<Machine> MakeMachine() {
    auto machine = Machine::Create(dir_ / "state");
    EXPECT_THAT(machine, IsOk());
    return *machine;
  }

  fs::path dir_;
};

TEST_F(MachineTest, StateIsFoundFromAnyFolderBelowTheRoot) {
  fs::create_directories(dir_ / ".ndp-sim");
  fs::create_directories(dir_ / "usr/lib");
  EXPECT_EQ(FindStateFile(dir_ / "usr/lib"), std::nullopt);
  ASSERT_THAT(Machine::Create(dir_ / ".ndp-sim/state"), IsOk());
  EXPECT_EQ(FindStateFile(dir_ / "usr/lib"), dir_ / ".ndp-sim/state");
}

TEST_F(MachineTest, WritesAreSeenThroughEveryMapping) {
  const auto writer = MakeMachine();
  const auto reader = Machine::Open(dir_ / "state");
  ASSERT_THAT(reader, IsOk());
  ASSERT_THAT(writer->Write([](Control& control) {
    control.gpu_count = 5;
    return Status();
  }),
              IsOk());
  EXPECT_EQ((*reader)->Read([](const Control& control) { return control.gpu_count; }), 5U);
}

TEST_F(MachineTest, AChangeWakesAWaiterOfAnotherProcess) {
  const auto machine = MakeMachine();
  const std::uint32_t seen = machine->Changes();
  const pid_t child = fork();
  if (child == 0) {
    const auto other = Machine::Open(dir_ / "state");
    const bool written = other.ok() && (*other)->Write([](Control&) { return Status(); }).ok();
    _exit(written ? 0 : 1);
  }
  // Far longer than the test may take: only the change can end it.
  while (machine->Changes() == seen) machine->WaitForChange(seen, 100 * kSecond);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(MachineTest, AWriterThatDiedHalfWayHoldsNobodyUp) {
  const auto machine = MakeMachine();
  const pid_t child = fork();
  if (child == 0) {
    (void)machine->Write([](Control& control) -> Status {
      control.gpu_count = 3;
      _exit(0);
    });
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(machine->control().sequence.load() % 2, 1U);
  EXPECT_EQ(machine->Read([](const Control& control) { return control.gpu_count; }), 3U);
  EXPECT_THAT(machine->Write([](Control&) { return Status(); }), IsOk());
  EXPECT_EQ(machine->control().sequence.load() % 2, 0U);
}

TEST_F(MachineTest, AnOverwrittenEventIsGone) {
  const auto machine = MakeMachine();
  EXPECT_EQ(machine->EventAt(0), std::nullopt);
  ASSERT_THAT(machine->Write([](Control& control) {
    for (std::uint64_t i = 0; i < kEventRing + 2; ++i) Machine::PushEvent(control, {.data = i});
    return Status();
  }),
              IsOk());
  EXPECT_EQ(machine->EventAt(1), std::nullopt);
  ASSERT_TRUE(machine->EventAt(kEventRing + 1).has_value());
  EXPECT_EQ(machine->EventAt(kEventRing + 1)->data, kEventRing + 1U);
}

TEST_F(MachineTest, ANewMachineInTheSamePlaceRetiresTheOldOne) {
  const auto old = MakeMachine();
  const auto young = MakeMachine();
  EXPECT_EQ(old->control().retired.load(), 1U);
  EXPECT_FALSE(old->InPlace());
  EXPECT_TRUE(young->InPlace());
  EXPECT_EQ(young->control().retired.load(), 0U);
}

TEST_F(MachineTest, AFileThatIsNoStateIsRefused) {
  const int fd = open((dir_ / "state").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(ftruncate(fd, 100), 0);
  close(fd);
  EXPECT_THAT(Machine::Open(dir_ / "state"), IsError(Code::kInvalidArgument));
  EXPECT_THAT(Machine::Open(dir_ / "absent"), IsError(Code::kNotFound));
}

}  // namespace
}  // namespace ndp::sim_state
