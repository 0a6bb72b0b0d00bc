#include <unistd.h>

#include <filesystem>

#include "sim_control/faults.h"
#include "sim_control/lifecycle.h"
#include "sim_control/mig.h"
#include "sim_control/simulation.h"
#include "sim_root/files.h"
#include "sim_state/functions.h"
#include "sim_state/sessions.h"
#include "testing/result_matchers.h"

namespace ndp::sim_control {
namespace {

namespace fs = std::filesystem;
using sim_root::ReadFile;
using testing::HasSubstr;
using testing::Not;

class ControlTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ndp-sim-control-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    dir_ = folder;
    nvml_ = dir_ / "nvml.so";
    ASSERT_THAT(sim_root::WriteFile(nvml_, "library"), IsOk());
    auto simulation = Up("dgx-h100");
    ASSERT_THAT(simulation, IsOk());
    simulation_ = std::make_unique<Simulation>(*std::move(simulation));
  }
  void TearDown() override { fs::remove_all(dir_); }

  Result<Simulation> Up(const std::string& profile) {
    NDP_TRY(auto loaded, sim_profile::LoadProfile(profile));
    return Simulation::Up(
        {.dir = dir_ / "node", .profile = std::move(loaded), .gpus = 0, .seed = "", .nvml = nvml_});
  }
  const sim_state::Gpu& Gpu(unsigned slot) { return simulation_->control().gpus[slot]; }
  std::string DevList() { return ReadFile(simulation_->root() / "dev.list").value_or(""); }

  fs::path dir_;
  fs::path nvml_;
  std::unique_ptr<Simulation> simulation_;
};

TEST_F(ControlTest, AGpuIsNamedByNumberUuidOrBusId) {
  EXPECT_THAT(simulation_->FindGpu("3"), IsOkAnd(3U));
  EXPECT_THAT(simulation_->FindGpu(Gpu(3).uuid), IsOkAnd(3U));
  EXPECT_THAT(simulation_->FindGpu("00000000:61:00.0"), IsOkAnd(3U));
  EXPECT_THAT(simulation_->FindGpu("8"), IsErrorThat(Code::kInvalidArgument, HasSubstr("8 GPUs")));
  // The number stays, whatever happens to the enumeration.
  ASSERT_THAT(RemoveGpu(*simulation_, 0), IsOk());
  EXPECT_THAT(simulation_->FindGpu("3"), IsOkAnd(3U));
}

TEST_F(ControlTest, ARepartitionShowsInCapabilitiesAndNodes) {
  ASSERT_THAT(SetMigMode(*simulation_, 1, true), IsOk());
  ASSERT_THAT(Partition(*simulation_, 1, "1g.10gb*7"), IsOk());
  const fs::path mig = simulation_->root() / "proc/driver/nvidia/capabilities/gpu1/mig";
  EXPECT_TRUE(fs::exists(mig / "gi7/ci0/access"));
  EXPECT_THAT(DevList(), HasSubstr("/dev/nvidia-caps/nvidia-cap201 c 236 201 0444 0\n"));
  ASSERT_THAT(Partition(*simulation_, 1, ""), IsOk());
  EXPECT_FALSE(fs::exists(mig / "gi7"));
  EXPECT_THAT(DevList(), Not(HasSubstr("nvidia-cap201")));
}

TEST_F(ControlTest, AWrongLayoutChangesNothing) {
  ASSERT_THAT(SetMigMode(*simulation_, 1, true), IsOk());
  ASSERT_THAT(Partition(*simulation_, 1, "3g.40gb"), IsOk());
  const std::string before = Gpu(1).mig.devices[0].uuid;
  EXPECT_THAT(Partition(*simulation_, 1, "3g.40gb*3"), IsError(Code::kInvalidArgument));
  EXPECT_EQ(Gpu(1).mig.devices[0].uuid, before);
  EXPECT_THAT(Partition(*simulation_, 0, "3g.40gb"),
              IsErrorThat(Code::kUnsupported, HasSubstr("not in MIG mode")));
}

TEST_F(ControlTest, DestroyingAnInstanceLeavesAGap) {
  ASSERT_THAT(SetMigMode(*simulation_, 0, true), IsOk());
  ASSERT_THAT(Partition(*simulation_, 0, "1g.10gb*3"), IsOk());
  const std::uint32_t middle = Gpu(0).mig.devices[1].gi_id;
  ASSERT_THAT(DestroyInstance(*simulation_, 0, middle), IsOk());
  EXPECT_EQ(Gpu(0).mig.devices[0].used, 1U);
  EXPECT_EQ(Gpu(0).mig.devices[1].used, 0U);
  EXPECT_EQ(Gpu(0).mig.devices[2].used, 1U);
  EXPECT_THAT(DestroyInstance(*simulation_, 0, middle), IsError(Code::kInvalidArgument));
}

TEST_F(ControlTest, APendingMigModeComesWithTheReset) {
  ASSERT_THAT(SetPendingMigMode(*simulation_, 2, true), IsOk());
  EXPECT_EQ(Gpu(2).mig_current, 0U);
  ASSERT_THAT(ResetGpu(*simulation_, 2), IsOk());
  EXPECT_EQ(Gpu(2).mig_current, 1U);
}

TEST_F(ControlTest, ClearLeavesTheTracesOfAResetThoughSomebodyIsThere) {
  sim_state::SessionLock session;
  sim_state::Client* client = sim_state::ClaimClient(simulation_->machine());
  client->attached.store(0xFF);
  ASSERT_THAT(session.Open(simulation_->machine(), client), IsOk());
  ASSERT_THAT(simulation_->machine().Write([](sim_state::Control& control) {
    auto& gpu = control.gpus[4];
    gpu.state = sim_state::GpuState::kLost;
    gpu.health.recovery_action = 1;
    gpu.health.ecc[1][0] = 7;
    gpu.health.ecc[1][1] = 9;
    gpu.health.remap_failure = 1;
    gpu.compute_mode = 3;
    return Status();
  }),
              IsOk());
  EXPECT_THAT(ResetGpu(*simulation_, 4), IsError(Code::kUnavailable));
  ASSERT_THAT(Clear(*simulation_, 4U), IsOk());
  EXPECT_EQ(Gpu(4).state, sim_state::GpuState::kOk);
  EXPECT_EQ(Gpu(4).health.recovery_action, 0);
  EXPECT_EQ(Gpu(4).health.ecc[1][0], 0U);
  EXPECT_EQ(Gpu(4).health.ecc[1][1], 9U);  // aggregate counters outlive a reset
  EXPECT_EQ(Gpu(4).health.remap_failure, 0U);
  EXPECT_EQ(Gpu(4).health.energy_millijoule, 0U);
  EXPECT_EQ(Gpu(4).compute_mode, 0U);
  EXPECT_GT(Gpu(3).health.energy_millijoule, 0U);
}

TEST_F(ControlTest, ARuleReplacesItsLike) {
  constexpr auto kName = static_cast<std::int32_t>(sim_state::FunctionId("nvmlDeviceGetName"));
  sim_state::Rule rule{.function = kName, .gpu = 1, .kind = sim_state::RuleKind::kError, .code = 3};
  ASSERT_THAT(AddRule(*simulation_, rule), IsOk());
  rule.code = 999;
  ASSERT_THAT(AddRule(*simulation_, rule), IsOk());
  EXPECT_EQ(simulation_->control().rule_count, 1U);
  EXPECT_EQ(simulation_->control().rules[0].code, 999);
  ASSERT_THAT(EndRules(*simulation_, kName, 2U), IsOk());
  EXPECT_EQ(simulation_->control().rule_count, 1U);
  ASSERT_THAT(EndRules(*simulation_, kName, std::nullopt), IsOk());
  EXPECT_EQ(simulation_->control().rule_count, 0U);
}

TEST_F(ControlTest, NamesAreCheckedAndExplained) {
  EXPECT_THAT(ParseFunction("nvmlDeviceGetNam"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("did you mean nvmlDeviceGetName?")));
  EXPECT_THAT(ParseFunction("all"), IsOkAnd(-1));
  EXPECT_THAT(ParseEventType("recovery-action"), IsOkAnd(0x8000U));
  EXPECT_THAT(ParseEventType("0x200"), IsOkAnd(0x200U));
  EXPECT_THAT(ParseEventType("storm"), IsErrorThat(Code::kInvalidArgument, HasSubstr("sbe-storm")));
}

TEST_F(ControlTest, ARebootHasANewBootIdAndDeadSessions) {
  const fs::path boot_id = simulation_->root() / "proc/sys/kernel/random/boot_id";
  const auto before = ReadFile(boot_id);
  const std::uint32_t epoch = simulation_->control().driver_epoch;
  ASSERT_THAT(Reboot(*simulation_), IsOk());
  EXPECT_NE(*ReadFile(boot_id), *before);
  EXPECT_GT(simulation_->control().driver_epoch, epoch);
}

TEST_F(ControlTest, UpIsRefusedWhileTheOldMachineIsInUse) {
  sim_state::SessionLock session;
  ASSERT_THAT(session.Open(simulation_->machine(), sim_state::ClaimClient(simulation_->machine())),
              IsOk());
  simulation_.reset();
  EXPECT_THAT(Up("pcie-t4"), IsErrorThat(Code::kUnavailable, HasSubstr("in use by pid")));
  session.Close();
  const auto again = Up("pcie-t4");
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->control().gpu_count, 4U);
}

TEST_F(ControlTest, WithoutAMachineThatIsSaid) {
  EXPECT_THAT(Simulation::Open(dir_ / "elsewhere"),
              IsErrorThat(Code::kNotFound, HasSubstr("ndp-sim up --dir")));
}

TEST_F(ControlTest, PlatformsWithoutNvmlHaveTheirFiles) {
  simulation_.reset();
  {
    const auto wsl = Up("wsl");
    ASSERT_THAT(wsl, IsOk());
    EXPECT_TRUE(fs::exists(wsl->root() / "usr/lib/wsl/lib/libdxcore.so"));
    EXPECT_THAT(ReadFile(wsl->root() / "dev.list").value_or(""), HasSubstr("/dev/dxg c 10 125"));
  }
  const auto jetson = Up("jetson");
  ASSERT_THAT(jetson, IsOk());
  EXPECT_TRUE(fs::exists(jetson->root() / "etc/nv_tegra_release"));
  EXPECT_FALSE(fs::exists(jetson->root() / "usr/lib/wsl"));
}

}  // namespace
}  // namespace ndp::sim_control
