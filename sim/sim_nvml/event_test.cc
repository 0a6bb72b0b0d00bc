// Events and faults of functions, with a client that waits.
#include <future>
#include <thread>

#include "sim_control/faults.h"
#include "sim_control/lifecycle.h"
#include "sim_nvml/client_test.h"
#include "sim_state/functions.h"
#include "testing/result_matchers.h"

namespace ndp::sim_nvml {
namespace {

using sim_state::GpuState;
using sim_state::RuleKind;

constexpr std::uint64_t kXid = 0x8;
// Longer than any test may take: a call that returns was ended by what the test did.
constexpr unsigned kLong = 100'000;

class EventTest : public ClientTest {
 protected:
  void Open(const std::string& profile) {
    Up(profile);
    ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
    ASSERT_EQ(Call("nvmlEventSetCreate", &set_), kSuccess);
  }
  void TearDown() override {
    if (library_ != nullptr) Call("nvmlShutdown");
    ClientTest::TearDown();
  }
  int Register(unsigned index, std::uint64_t types = kXid) {
    return Call("nvmlDeviceRegisterEvents", Gpu(index), types, set_);
  }
  Status Send(std::uint32_t slot, std::uint64_t xid) {
    return sim_control::SendEvents(*simulation_, {{.type = kXid, .data = xid, .gpu = slot}}, 1);
  }
  int Wait(EventData* event, unsigned ms) { return Call("nvmlEventSetWait_v2", set_, event, ms); }

  // Runs a call on a thread that is known to be in the library's wait before this returns.
  template <typename F>
  std::future<int> Blocked(const char* function, F call) {
    const auto id = static_cast<std::size_t>(sim_state::FindFunction(function));
    const auto& calls = simulation_->machine().clients().calls[id];
    const std::uint64_t before = calls.load();
    auto result = std::async(std::launch::async, call);
    while (calls.load() == before) std::this_thread::yield();
    return result;
  }

  Handle set_ = nullptr;
};

TEST_F(EventTest, AnEventReachesWhoHasRegisteredForItsTypeAndGpu) {
  Open("dgx-h100");
  ASSERT_EQ(Register(3), kSuccess);
  ASSERT_THAT(Send(2, 31), IsOk());
  ASSERT_THAT(sim_control::SendEvents(*simulation_, {{.type = 0x1, .data = 0, .gpu = 3}}, 1),
              IsOk());
  ASSERT_THAT(sim_control::SendEvents(
                  *simulation_, {{.type = kXid, .data = 79, .gpu = 3, .gi_id = 2, .ci_id = 0}}, 1),
              IsOk());
  EventData event{};
  ASSERT_EQ(Wait(&event, 0), kSuccess);
  EXPECT_EQ(event.device, Gpu(3));
  EXPECT_EQ(event.type, kXid);
  EXPECT_EQ(event.data, 79U);
  EXPECT_EQ(event.gi_id, 2U);
  EXPECT_EQ(event.ci_id, 0U);
  EXPECT_EQ(Wait(&event, 0), kTimeout);
}

TEST_F(EventTest, EventsBeforeRegistrationAreLost) {
  Open("dgx-h100");
  ASSERT_THAT(Send(0, 79), IsOk());
  ASSERT_EQ(Register(0), kSuccess);
  EventData event{};
  EXPECT_EQ(Wait(&event, 0), kTimeout);
  ASSERT_THAT(Send(0, 48), IsOk());
  ASSERT_EQ(Wait(&event, 0), kSuccess);
  EXPECT_EQ(event.data, 48U);
}

TEST_F(EventTest, AWaiterIsWokenByAnEvent) {
  Open("dgx-h100");
  ASSERT_EQ(Register(1), kSuccess);
  EventData event{};
  auto waiting = Blocked("nvmlEventSetWait_v2", [&] { return Wait(&event, kLong); });
  ASSERT_THAT(Send(1, 94), IsOk());
  EXPECT_EQ(waiting.get(), kSuccess);
  EXPECT_EQ(event.data, 94U);
}

TEST_F(EventTest, ALostGpuEndsEveryWaitAtOnce) {
  Open("dgx-h100");
  ASSERT_EQ(Register(1), kSuccess);
  ASSERT_EQ(Register(5), kSuccess);
  EventData event{};
  auto waiting = Blocked("nvmlEventSetWait_v2", [&] { return Wait(&event, kLong); });
  ASSERT_THAT(sim_control::SetGpuState(*simulation_, 5, GpuState::kLost), IsOk());
  EXPECT_EQ(waiting.get(), kGpuIsLost);
  EXPECT_EQ(Wait(&event, kLong), kGpuIsLost);
  // A set without it works.
  Handle rebuilt = nullptr;
  ASSERT_EQ(Call("nvmlEventSetFree", set_), kSuccess);
  ASSERT_EQ(Call("nvmlEventSetCreate", &rebuilt), kSuccess);
  set_ = rebuilt;
  ASSERT_EQ(Register(1), kSuccess);
  EXPECT_EQ(Wait(&event, 0), kTimeout);
}

TEST_F(EventTest, ADriverThatGoesEndsTheWait) {
  Open("dgx-h100");
  ASSERT_EQ(Register(0), kSuccess);
  EventData event{};
  auto waiting = Blocked("nvmlEventSetWait_v2", [&] { return Wait(&event, kLong); });
  ASSERT_THAT(sim_control::DriverGone(*simulation_, 1, false), IsOk());
  EXPECT_EQ(waiting.get(), kUninitialized);
}

TEST_F(EventTest, TypesThatAGpuLacksAreNotSupported) {
  Open("pcie-t4");
  std::uint64_t types = 0;
  ASSERT_EQ(Call("nvmlDeviceGetSupportedEventTypes", Gpu(0), &types), kSuccess);
  EXPECT_EQ(types, 0xBU);
  EXPECT_EQ(Register(0, 0x8000), kNotSupported);
}

TEST_F(EventTest, AHangingFunctionReturnsWhenTheFaultEnds) {
  Open("dgx-h100");
  constexpr auto kMemory =
      static_cast<std::int32_t>(sim_state::FunctionId("nvmlDeviceGetMemoryInfo"));
  ASSERT_THAT(
      sim_control::AddRule(*simulation_, {.function = kMemory, .gpu = 4, .kind = RuleKind::kHang}),
      IsOk());
  Memory memory{};
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo", Gpu(3), &memory), kSuccess);
  const Handle hung = Gpu(4);
  Memory late{};
  auto waiting = Blocked("nvmlDeviceGetMemoryInfo",
                         [&] { return Call("nvmlDeviceGetMemoryInfo", hung, &late); });
  ASSERT_THAT(sim_control::EndRules(*simulation_, kMemory, 4U), IsOk());
  EXPECT_EQ(waiting.get(), kSuccess);
  EXPECT_EQ(late.total, memory.total);
}

TEST_F(EventTest, AHungGpuHoldsItsOwnCallsOnly) {
  Open("dgx-h100");
  const Handle hung = Gpu(4);
  ASSERT_THAT(sim_control::SetGpuState(*simulation_, 4, GpuState::kHung), IsOk());
  unsigned minor = 0;
  EXPECT_EQ(Call("nvmlDeviceGetMinorNumber", Gpu(3), &minor), kSuccess);
  auto waiting = Blocked("nvmlDeviceGetMinorNumber", [&] {
    unsigned late = 0;
    return Call("nvmlDeviceGetMinorNumber", hung, &late);
  });
  ASSERT_THAT(sim_control::Clear(*simulation_, 4U), IsOk());
  EXPECT_EQ(waiting.get(), kSuccess);
}

TEST_F(EventTest, AFunctionFailsOrIsMissingAsTold) {
  Open("dgx-h100");
  constexpr auto kName = static_cast<std::int32_t>(sim_state::FunctionId("nvmlDeviceGetName"));
  char text[96];
  ASSERT_THAT(sim_control::AddRule(*simulation_,
                                   {.function = kName, .kind = RuleKind::kError, .code = kUnknown}),
              IsOk());
  EXPECT_EQ(Call("nvmlDeviceGetName", Gpu(0), &text[0], 96U), kUnknown);
  ASSERT_THAT(sim_control::EndRules(*simulation_, kName, std::nullopt), IsOk());
  ASSERT_THAT(sim_control::AddRule(*simulation_, {.function = kName, .kind = RuleKind::kMissing}),
              IsOk());
  // Who has the library loaded already gets the answer; who loads it now lacks the symbol.
  EXPECT_EQ(Call("nvmlDeviceGetName", Gpu(0), &text[0], 96U), kFunctionNotFound);
  Call("nvmlShutdown");
  Unload();
  Load();
  EXPECT_EQ(Call("nvmlDeviceGetName", Handle{nullptr}, &text[0], 96U), -1);
  Unload();
  ASSERT_THAT(sim_control::Clear(*simulation_, std::nullopt), IsOk());
  Load();
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetName", Gpu(0), &text[0], 96U), kSuccess);
}

}  // namespace
}  // namespace ndp::sim_nvml
