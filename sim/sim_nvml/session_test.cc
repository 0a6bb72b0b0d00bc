// Sessions: references, attachment, what a session goes on seeing, a driver that goes and comes.
#include <unistd.h>

#include <cstring>
#include <thread>

#include "sim_control/faults.h"
#include "sim_control/lifecycle.h"
#include "sim_control/mig.h"
#include "sim_nvml/client_test.h"
#include "sim_state/functions.h"
#include "sim_state/sessions.h"
#include "testing/result_matchers.h"

namespace ndp::sim_nvml {
namespace {

using sim_state::GpuState;
using testing::HasSubstr;
using testing::IsEmpty;

class SessionTest : public ClientTest {};

TEST_F(SessionTest, InitAndShutdownAreCounted) {
  Up("dgx-h100");
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kUninitialized);
  EXPECT_EQ(Call("nvmlShutdown"), kUninitialized);
  EXPECT_EQ(Call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(Call("nvmlInitWithFlags", 0U), kSuccess);
  EXPECT_EQ(Call("nvmlShutdown"), kSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kSuccess);
  EXPECT_EQ(count, 8U);
  EXPECT_EQ(Call("nvmlShutdown"), kSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kUninitialized);
  EXPECT_THAT(sim_state::OpenSessions(simulation_->machine()), IsEmpty());
}

TEST_F(SessionTest, AnOpenSessionKeepsResetsAndMigModesAway) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  EXPECT_THAT(sim_control::ResetGpu(*simulation_, 3),
              IsErrorThat(Code::kUnavailable, HasSubstr("in use by another client: pid ")));
  EXPECT_THAT(sim_control::SetMigMode(*simulation_, 3, true), IsError(Code::kUnavailable));
  ASSERT_EQ(Call("nvmlShutdown"), kSuccess);
  EXPECT_THAT(sim_control::ResetGpu(*simulation_, 3), IsOk());
  EXPECT_THAT(sim_control::SetMigMode(*simulation_, 3, true), IsOk());
}

TEST_F(SessionTest, WithoutAttachingOnlyWhatIsLookedUpIsHeld) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInitWithFlags", 2U), kSuccess);
  EXPECT_THAT(sim_control::ResetGpu(*simulation_, 3), IsOk());
  Handle handle = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", "0000:61:00.0", &handle), kSuccess);
  EXPECT_THAT(sim_control::ResetGpu(*simulation_, 3), IsError(Code::kUnavailable));
  EXPECT_THAT(sim_control::ResetGpu(*simulation_, 4), IsOk());
  // A search by UUID initialises whatever it meets.
  ASSERT_EQ(Call("nvmlDeviceGetHandleByUUID", Uuid(handle).c_str(), &handle), kSuccess);
  EXPECT_THAT(sim_control::ResetGpu(*simulation_, 4), IsError(Code::kUnavailable));
  Call("nvmlShutdown");
}

TEST_F(SessionTest, ALostGpuSpoilsSearchesByUuidForAll) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  const std::string uuid = Uuid(Gpu(0));
  ASSERT_THAT(sim_control::SetGpuState(*simulation_, 5, GpuState::kLost), IsOk());
  Handle handle = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &handle), kGpuIsLost);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 0U, &handle), kSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 5U, &handle), kGpuIsLost);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", "00000000:C3:00.0", &handle), kGpuIsLost);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", "00000000:1B:00.0", &handle), kSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", "0000:99:00.0", &handle), kNotFound);
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kSuccess);
  EXPECT_EQ(count, 8U);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, AResetRequiredGpuIsFoundButAnswersNothing) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  ASSERT_THAT(sim_control::SetGpuState(*simulation_, 2, GpuState::kResetRequired), IsOk());
  Memory memory{};
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo", Gpu(2), &memory), kResetRequired);
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo", Gpu(1), &memory), kSuccess);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, ASessionGoesOnShowingInstancesThatAreGone) {
  Up("dgx-h100");
  ASSERT_THAT(sim_control::SetMigMode(*simulation_, 0, true), IsOk());
  ASSERT_THAT(sim_control::Partition(*simulation_, 0, "1g.10gb*7"), IsOk());
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  Handle before = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetMigDeviceHandleByIndex", Gpu(0), 1U, &before), kSuccess);
  const std::string old = Uuid(before);
  ASSERT_THAT(sim_control::Partition(*simulation_, 0, "3g.40gb*2"), IsOk());
  EXPECT_EQ(Uuid(before), old);
  Call("nvmlShutdown");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  Handle after = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetMigDeviceHandleByIndex", Gpu(0), 1U, &after), kSuccess);
  // The same handle, another device.
  EXPECT_EQ(after, before);
  EXPECT_NE(Uuid(after), old);
  EXPECT_EQ(Call("nvmlDeviceGetMigDeviceHandleByIndex", Gpu(0), 2U, &after), kNotFound);
  EXPECT_EQ(Call("nvmlDeviceGetMigDeviceHandleByIndex", Gpu(0), 7U, &after), kInvalidArgument);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, WithMigOffThereAreNoDevicesToCount) {
  Up("dgx-h100");
  ASSERT_THAT(sim_control::SetMigMode(*simulation_, 0, true), IsOk());
  ASSERT_THAT(sim_control::SetMigPermission(*simulation_, 2, false), IsOk());
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  unsigned count = 9;
  EXPECT_EQ(Call("nvmlDeviceGetMaxMigDeviceCount", Gpu(0), &count), kSuccess);
  EXPECT_EQ(count, 7U);
  EXPECT_EQ(Call("nvmlDeviceGetMaxMigDeviceCount", Gpu(1), &count), kSuccess);
  EXPECT_EQ(count, 0U);
  unsigned current = 9;
  unsigned pending = 9;
  EXPECT_EQ(Call("nvmlDeviceGetMigMode", Gpu(2), &current, &pending), kNoPermission);
  EXPECT_EQ(Call("nvmlDeviceGetMigMode", Gpu(0), &current, &pending), kSuccess);
  EXPECT_EQ(current, 1U);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, ARemovedGpuIsLostToOldSessionsAndAbsentInNewOnes) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  const Handle handle = Gpu(7);
  const std::string last = Uuid(handle);
  ASSERT_THAT(sim_control::RemoveGpu(*simulation_, 6), IsOk());
  char text[96];
  EXPECT_EQ(Call("nvmlDeviceGetName", Gpu(7), &text[0], 96U), kSuccess);
  Handle removed = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 6U, &removed), kGpuIsLost);
  Call("nvmlShutdown");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  unsigned count = 0;
  Call("nvmlDeviceGetCount_v2", &count);
  EXPECT_EQ(count, 7U);
  EXPECT_EQ(Uuid(Gpu(6)), last);
  Call("nvmlShutdown");
  ASSERT_THAT(sim_control::AddGpu(*simulation_, 6), IsOk());
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(Uuid(Gpu(7)), last);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, EnumerationFollowsAnewOrderInTheNextSessionOnly) {
  Up("pcie-t4");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  const std::string first = Uuid(Gpu(0));
  ASSERT_THAT(sim_control::Reorder(*simulation_, {3, 2, 1, 0}), IsOk());
  EXPECT_EQ(Uuid(Gpu(0)), first);
  Call("nvmlShutdown");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(Uuid(Gpu(3)), first);
  unsigned minor = 9;
  EXPECT_EQ(Call("nvmlDeviceGetMinorNumber", Gpu(3), &minor), kSuccess);
  EXPECT_EQ(minor, 0U);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, WithoutADriverSessionsDieAndInitFails) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  ASSERT_THAT(sim_control::DriverGone(*simulation_, 9, false), IsOk());
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kDriverNotLoaded);
  EXPECT_EQ(Call("nvmlInit_v2"), kDriverNotLoaded);
  ASSERT_THAT(sim_control::DriverBack(*simulation_, NDP_SIM_NVML), IsOk());
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kUninitialized);
  EXPECT_EQ(Call("nvmlShutdown"), kSuccess);
  EXPECT_EQ(Call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kSuccess);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, AnUpgradedDriverRefusesTheOldLibraryAndTakesTheNew) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  ASSERT_THAT(sim_control::DriverUpgrade(*simulation_, "575.57.08", NDP_SIM_NVML), IsOk());
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kUninitialized);
  Call("nvmlShutdown");
  EXPECT_EQ(Call("nvmlInit_v2"), kVersionMismatch);
  Unload();
  Load();
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  char version[80];
  EXPECT_EQ(Call("nvmlSystemGetDriverVersion", &version[0], 80U), kSuccess);
  EXPECT_STREQ(version, "575.57.08");
  Call("nvmlShutdown");
}

TEST_F(SessionTest, InitFailsFromTheNthCall) {
  Up("dgx-h100");
  ASSERT_THAT(sim_control::SetInitFault(*simulation_, kUnknown, 2, std::nullopt), IsOk());
  EXPECT_EQ(Call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(Call("nvmlInit_v2"), kUnknown);
  EXPECT_EQ(Call("nvmlInit_v2"), kUnknown);
  ASSERT_THAT(sim_control::Clear(*simulation_, std::nullopt), IsOk());
  EXPECT_EQ(Call("nvmlInit_v2"), kSuccess);
  Call("nvmlShutdown");
  Call("nvmlShutdown");
}

TEST_F(SessionTest, CallsAreCountedByFunctionAndClient) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  for (unsigned i = 0; i < 3; ++i) Gpu(i);
  constexpr unsigned kByIndex = sim_state::FunctionId("nvmlDeviceGetHandleByIndex_v2");
  EXPECT_EQ(simulation_->machine().clients().calls[kByIndex].load(), 3U);
  const auto clients = sim_state::CallsByClient(simulation_->machine());
  ASSERT_THAT(clients, testing::SizeIs(1));
  EXPECT_EQ(clients[0].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(clients[0].calls[kByIndex], 3U);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, ANewMachineInTheSamePlaceIsFoundByTheNextInit) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  Call("nvmlShutdown");
  simulation_.reset();
  std::filesystem::remove_all(dir_ / "root/.ndp-sim");
  EXPECT_EQ(Call("nvmlInit_v2"), kDriverNotLoaded);
  auto again = sim_control::Simulation::Up({.dir = dir_,
                                            .profile = *sim_profile::LoadProfile("pcie-t4"),
                                            .gpus = 0,
                                            .seed = "",
                                            .nvml = NDP_SIM_NVML});
  ASSERT_THAT(again, IsOk());
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  unsigned count = 0;
  Call("nvmlDeviceGetCount_v2", &count);
  EXPECT_EQ(count, 4U);
  Call("nvmlShutdown");
}

TEST_F(SessionTest, EveryFunctionIsExported) {
  Up("pcie-t4");
  for (const std::string_view name : sim_state::kFunctionNames) {
    EXPECT_NE(dlsym(library_, std::string(name).c_str()), nullptr) << name;
  }
}

TEST_F(SessionTest, DlcloseUnloadsTheLibrary) {
  Up("dgx-h100");
  ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
  ASSERT_EQ(Call("nvmlShutdown"), kSuccess);
  Unload();
  const auto path = dir_ / "root" / sim_root::kLibraryFolder / "libnvidia-ml.so.1";
  EXPECT_EQ(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
}  // namespace ndp::sim_nvml
