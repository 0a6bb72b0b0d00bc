#include "plugin/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/socket_name.h"

namespace ndp::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

const Status kOk;

// A folder with a kubelet, as far as the machine sees it.
class FakeHost final : public Registration::Host {
 public:
  Status EnsureSocket(const std::string& endpoint) override {
    if (!folder) return Error(Code::kNotFound, "no such folder");
    if (!files.contains(endpoint)) ++made;
    files.insert(endpoint);
    return {};
  }
  void RemoveSocket(const std::string& endpoint) override { files.erase(endpoint); }
  Result<os::FileIdentity> Connect() override {
    ++connects;
    if (!kubelet) return Error(Code::kUnavailable, "connection refused");
    return *kubelet;
  }
  void Register(const std::string& endpoint) override {
    EXPECT_TRUE(files.contains(endpoint)) << "serve first, register second";
    registers.push_back(endpoint);
  }
  void CancelRegister(const std::string& endpoint) override { cancelled.push_back(endpoint); }
  void Resend() override { ++resends; }

  bool folder = true;
  std::optional<os::FileIdentity> kubelet;
  std::set<std::string> files;
  std::vector<std::string> registers;
  std::vector<std::string> cancelled;
  int made = 0;
  int connects = 0;
  int resends = 0;
};

class RegistrationTest : public ::testing::Test {
 protected:
  static os::FileIdentity Inode(std::uint64_t inode) { return {.device = 1, .inode = inode}; }

  // The kubelet makes (or has) its socket, and the folder's watch tells so.
  void KubeletUp(std::uint64_t inode = 7) {
    host_.kubelet = Inode(inode);
    machine_.OnKubeletSocket(Inode(inode));
  }
  std::string Registered() {
    const std::string endpoint = host_.registers.back();
    machine_.OnRegistered(endpoint, kOk);
    machine_.OnStreamOpened(endpoint, ++stream_);
    return endpoint;
  }
  std::string Up() {
    host_.kubelet = Inode(7);
    machine_.Start();
    return Registered();
  }
  void Advance(Duration by) {
    const MonoTime end = clock_.Now() + by;
    while (machine_.next() && *machine_.next() <= end) {
      clock_.Advance(std::max(Duration::zero(), *machine_.next() - clock_.Now()));
      machine_.OnTime();
    }
    clock_.Advance(end - clock_.Now());
  }

  ManualClock clock_;
  FakeHost host_;
  Registration machine_{host_, clock_, {.resource = "nvidia.com/gpu", .seed = 1}};
  std::uint64_t stream_ = 0;
};

TEST_F(RegistrationTest, ServesThenRegisters) {
  const std::string endpoint = Up();
  EXPECT_TRUE(ServesResource(endpoint, "nvidia.com/gpu"));
  EXPECT_TRUE(IsRegistrationSocket(endpoint));
  EXPECT_THAT(host_.files, ElementsAre(endpoint));
  EXPECT_TRUE(machine_.state().registered);
  EXPECT_EQ(machine_.state().registrations, 1U);
}

TEST_F(RegistrationTest, RegisterAloneIsNotRegisteredWithoutAStream) {
  host_.kubelet = Inode(7);
  machine_.Start();
  machine_.OnRegistered(host_.registers.back(), kOk);
  EXPECT_FALSE(machine_.state().registered);
  Advance(Registration::kStreamWithin);
  EXPECT_THAT(host_.registers, SizeIs(2));
}

TEST_F(RegistrationTest, AKubeletThatOpensNoStreamIsAskedLessAndLessOften) {
  host_.kubelet = Inode(7);
  machine_.Start();
  for (const MonoTime begin = clock_.Now(); clock_.Now() - begin < 10min; Advance(1s)) {
    machine_.OnRegistered(host_.registers.back(), kOk);
  }
  EXPECT_LT(host_.registers.size(), 30U);
  machine_.OnRegistered(host_.registers.back(), kOk);
  machine_.OnStreamOpened(host_.registers.back(), 1);
  EXPECT_TRUE(machine_.state().registered);
}

// It has heard of the peer's end after our Register, and closed the wrong connection.
TEST_F(RegistrationTest, WithoutAStreamAfterAPeersEndItRegistersAgainSoon) {
  Up();
  Advance(Registration::kStable);
  machine_.OnPeerEnded(clock_.Wall());
  machine_.OnRegistered(host_.registers.back(), kOk);
  EXPECT_THAT(host_.registers, SizeIs(2));
  Advance(Registration::kStreamAfterPeer);
  EXPECT_THAT(host_.registers, SizeIs(3));
  Registered();
  EXPECT_TRUE(machine_.state().registered);
}

// It closes our connection for the peer's in the midst of our Register: no reason to wait, once.
TEST_F(RegistrationTest, WhatFailsAtAPeersEndIsRetriedAtOnceWhateverFailedBefore) {
  Up();
  const Error closed(Code::kUnavailable, "GetDevicePluginOptions: CANCELLED");
  machine_.OnPeerEnded(clock_.Wall());
  machine_.OnRegistered(host_.registers.back(), closed);
  EXPECT_THAT(host_.registers, SizeIs(3));
  machine_.OnRegistered(host_.registers.back(), closed);
  EXPECT_THAT(host_.registers, SizeIs(3));
  Advance(2 * Registration::kFirstDelay);
  EXPECT_THAT(host_.registers, SizeIs(4));
  // And while the registrations before are recent losses:
  Registered();
  machine_.OnPeerEnded(clock_.Wall());
  machine_.OnRegistered(host_.registers.back(), kOk);
  EXPECT_THAT(host_.registers, SizeIs(5));
  Advance(Registration::kStreamAfterPeer);
  EXPECT_THAT(host_.registers, SizeIs(6));
}

TEST_F(RegistrationTest, TheStreamMayComeBeforeTheAnswer) {
  host_.kubelet = Inode(7);
  machine_.Start();
  machine_.OnStreamOpened(host_.registers.back(), 1);
  EXPECT_FALSE(machine_.state().registered);
  machine_.OnRegistered(host_.registers.back(), kOk);
  EXPECT_TRUE(machine_.state().registered);
}

TEST_F(RegistrationTest, WaitsForAKubeletWithGrowingDelaysAndKeepsItsSocket) {
  machine_.Start();
  Advance(4ms);  // tried at 0, 1 and 3 ms
  EXPECT_EQ(host_.connects, 3);
  const auto files = host_.files;
  Advance(60s);
  EXPECT_LT(host_.connects, 30);
  EXPECT_EQ(host_.files, files) << "an unused name stays";
  EXPECT_THAT(host_.registers, IsEmpty());
  // Its appearance is not waited for.
  KubeletUp();
  EXPECT_THAT(host_.registers, SizeIs(1));
}

// The file is there between the kubelet's bind and its listen.
TEST_F(RegistrationTest, TriesAgainInAMillisecondWhenTheKubeletDoesNotListenYet) {
  machine_.Start();
  Advance(60s);
  machine_.OnKubeletSocket(Inode(7));
  host_.kubelet = Inode(7);
  Advance(1ms);
  EXPECT_THAT(host_.registers, SizeIs(1));
}

TEST_F(RegistrationTest, WaitsForAMissingFolder) {
  host_.folder = false;
  host_.kubelet = Inode(7);
  machine_.Start();
  Advance(10s);
  EXPECT_EQ(host_.connects, 0) << "nothing is served, so nothing is registered";
  EXPECT_EQ(machine_.state().last_error, "no such folder");
  host_.folder = true;
  Advance(Registration::kLongestDelay);
  EXPECT_THAT(host_.registers, SizeIs(1));
}

TEST_F(RegistrationTest, ALostStreamIsANewRegistrationAtOnceUnderANewPath) {
  const std::string first = Up();
  machine_.OnStreamEnded(first, stream_);
  ASSERT_THAT(host_.registers, SizeIs(2));
  EXPECT_NE(host_.registers[1], first) << "a path belongs to one registration";
  EXPECT_THAT(host_.files, ElementsAre(host_.registers[1])) << "the old one has no streams left";
}

TEST_F(RegistrationTest, RepeatedLossesBackOff) {
  Up();
  machine_.OnStreamEnded(host_.registers.back(), stream_);  // answered at once
  Registered();
  machine_.OnStreamEnded(host_.registers.back(), stream_);
  EXPECT_THAT(host_.registers, SizeIs(2));
  Advance(39ms);
  EXPECT_THAT(host_.registers, SizeIs(2)) << "50 ms less a fifth";
  Advance(21ms);
  EXPECT_THAT(host_.registers, SizeIs(3));
  for (int i = 0; i < 20; ++i) {
    Registered();
    machine_.OnStreamEnded(host_.registers.back(), stream_);
    Advance(6s);
    ASSERT_THAT(host_.registers, SizeIs(4 + i)) << "never longer than 5 s and a fifth";
  }
  // One that has lasted clears the account.
  Registered();
  Advance(Registration::kStable);
  const std::size_t before = host_.registers.size();
  machine_.OnStreamEnded(host_.registers.back(), stream_);
  EXPECT_THAT(host_.registers, SizeIs(before + 1));
}

// Up to 1.36 the end of an older instance's stream closes ours: seen as a plain loss.
TEST_F(RegistrationTest, AStreamThatEndedWhileRegisteringIsALoss) {
  host_.kubelet = Inode(7);
  machine_.Start();
  const std::string first = host_.registers.back();
  machine_.OnStreamOpened(first, 1);
  machine_.OnStreamEnded(first, 1);
  EXPECT_THAT(host_.registers, SizeIs(1)) << "the answer decides";
  machine_.OnRegistered(first, kOk);
  EXPECT_THAT(host_.registers, SizeIs(2));
  EXPECT_FALSE(host_.files.contains(first));
}

TEST_F(RegistrationTest, ARefusedRegisterIsTriedAgainUnderANewPath) {
  host_.kubelet = Inode(7);
  machine_.Start();
  const std::string first = host_.registers.back();
  machine_.OnRegistered(first, Error(Code::kInternal, "device plugin already connected"));
  EXPECT_THAT(host_.files, IsEmpty()) << "its path is never used again";
  EXPECT_EQ(machine_.state().last_error, "device plugin already connected");
  Advance(61ms);
  ASSERT_THAT(host_.registers, SizeIs(2));
  EXPECT_NE(host_.registers[1], first);
  Registered();
  EXPECT_EQ(machine_.state().last_error, "");
}

TEST_F(RegistrationTest, AStreamOutweighsADeadlineOfRegister) {
  host_.kubelet = Inode(7);
  machine_.Start();
  machine_.OnStreamOpened(host_.registers.back(), 1);
  machine_.OnRegistered(host_.registers.back(), Error(Code::kDeadlineExceeded, "deadline"));
  EXPECT_TRUE(machine_.state().registered);
  EXPECT_THAT(host_.registers, SizeIs(1));
}

// The kubelet cleans its folder, then makes its socket.
TEST_F(RegistrationTest, AKubeletRestartRegistersAtOnceAndOldStreamsAreServedUntilTheyEnd) {
  const std::string first = Up();
  host_.files.clear();
  machine_.OnSocketVanished(first);
  EXPECT_THAT(host_.files, ElementsAre(first));
  KubeletUp(8);
  ASSERT_THAT(host_.registers, SizeIs(2));
  EXPECT_TRUE(host_.files.contains(first)) << "its stream is not known to have ended";
  machine_.OnStreamEnded(first, stream_);
  EXPECT_THAT(host_.files, ElementsAre(host_.registers[1]));
  EXPECT_THAT(host_.registers, SizeIs(2)) << "an old path's end is no loss";
}

TEST_F(RegistrationTest, OwnSocketIsPutBackWhileRegisterHangs) {
  host_.kubelet = Inode(7);
  machine_.Start();
  host_.files.clear();
  machine_.OnSocketVanished(host_.registers.back());
  EXPECT_THAT(host_.files, ElementsAre(host_.registers.back()));
  EXPECT_THAT(host_.registers, SizeIs(1));
}

TEST_F(RegistrationTest, ARemovedSocketIsFoundBeforeRegisterAndByThePoll) {
  machine_.Start();
  host_.files.clear();
  KubeletUp();
  Registered();  // FakeHost::Register checks the file
  host_.files.clear();
  machine_.CheckSockets();
  EXPECT_THAT(host_.files, SizeIs(1));
}

TEST_F(RegistrationTest, APutBackThatFailsIsTriedAgain) {
  const std::string first = Up();
  host_.files.clear();
  host_.folder = false;
  machine_.OnSocketVanished(first);
  host_.folder = true;
  Advance(1ms);
  EXPECT_THAT(host_.files, ElementsAre(first));
}

TEST_F(RegistrationTest, ANewKubeletEndsAHangingRegister) {
  host_.kubelet = Inode(7);
  machine_.Start();
  const std::string first = host_.registers.back();
  KubeletUp(8);
  EXPECT_THAT(host_.cancelled, ElementsAre(first));
  ASSERT_THAT(host_.registers, SizeIs(2));
  EXPECT_TRUE(host_.files.contains(first)) << "its call is not answered yet";
  machine_.OnRegistered(first, Error(Code::kUnavailable, "cancelled"));
  EXPECT_FALSE(host_.files.contains(first));
  Registered();
  EXPECT_TRUE(machine_.state().registered);
}

TEST_F(RegistrationTest, TheSameKubeletSocketSeenAgainChangesNothing) {
  Up();
  machine_.OnKubeletSocket(Inode(7));
  EXPECT_THAT(host_.registers, SizeIs(1));
}

TEST_F(RegistrationTest, OtherClientsStreamsNeitherKeepNorEndTheRegistration) {
  const std::string first = Up();
  const std::uint64_t kubelets = stream_;
  machine_.OnStreamOpened(first, 100);
  machine_.OnStreamEnded(first, 100);
  EXPECT_TRUE(machine_.state().registered);
  machine_.OnStreamOpened(first, 101);
  machine_.OnStreamEnded(first, kubelets);
  EXPECT_THAT(host_.registers, SizeIs(2));
  EXPECT_TRUE(host_.files.contains(first)) << "until its last stream ends";
  machine_.OnStreamEnded(first, 101);
  EXPECT_FALSE(host_.files.contains(first));
}

TEST_F(RegistrationTest, TheListIsSentAgainAfterAMinuteAndWhenAPeerEnds) {
  Up();
  machine_.OnPeerEnded(clock_.Wall() - 1h);
  EXPECT_EQ(host_.resends, 1);
  Advance(Registration::kResendAfter);
  EXPECT_EQ(host_.resends, 2);
  Advance(1h);
  EXPECT_EQ(host_.resends, 2) << "an idle registration asks for no wake-up";
  EXPECT_FALSE(machine_.next());
}

TEST_F(RegistrationTest, ANewerInstanceThatEndsLeavesTheKubeletAskingNobodySoItRegistersAnew) {
  Up();
  const auto before = host_.registers.size();
  machine_.OnPeerEnded(clock_.Wall() + 1s);
  EXPECT_EQ(host_.registers.size(), before + 1);
  EXPECT_EQ(host_.resends, 0);
}

TEST_F(RegistrationTest, WithoutAKubeletItServesUnderAFixedName) {
  Registration machine(host_, clock_, {.resource = "nvidia.com/gpu", .with_kubelet = false});
  host_.kubelet = Inode(7);
  machine.Start();
  machine.OnKubeletSocket(Inode(8));
  EXPECT_THAT(host_.files, ElementsAre("nvidia-gpu.sock"));
  EXPECT_EQ(host_.connects, 0);
  EXPECT_FALSE(machine.state().wanted);
  host_.files.clear();
  machine.OnSocketVanished("nvidia-gpu.sock");
  EXPECT_THAT(host_.files, SizeIs(1));
}

TEST_F(RegistrationTest, ARetiringResourceKeepsItsStreamsButRegistersNoMore) {
  const std::string first = Up();
  machine_.Cease();
  KubeletUp(8);
  EXPECT_THAT(host_.registers, SizeIs(1));
  EXPECT_THAT(host_.files, ElementsAre(first));
  EXPECT_FALSE(machine_.next());
}

TEST_F(RegistrationTest, StopRemovesEverySocket) {
  Up();
  KubeletUp(8);
  ASSERT_THAT(host_.files, SizeIs(2));
  machine_.Stop();
  EXPECT_THAT(host_.files, IsEmpty());
  EXPECT_THAT(host_.cancelled, SizeIs(1));
  machine_.OnStreamEnded(host_.registers.front(), stream_);
  machine_.OnRegistered(host_.registers.back(), kOk);
  machine_.CheckSockets();
  KubeletUp(9);
  EXPECT_THAT(host_.files, IsEmpty());
  EXPECT_THAT(host_.registers, SizeIs(2));
}

}  // namespace
}  // namespace ndp::plugin
