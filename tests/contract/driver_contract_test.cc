// What every Driver must do, whoever implements it: run over the simulated library, and over the
// real one where this machine has a GPU (or NDP_CONTRACT_ROOT names a driver root).
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "nvml/dl_driver.h"
#include "testing/result_matchers.h"

namespace ndp::nvml {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint64_t kWanted = kEventXid | kEventSingleBitEcc | kEventDoubleBitEcc;

struct Machine {
  std::string name;
  fs::path driver_root;
};

// The machines of this run: the folders that NDP_CONTRACT_ROOTS lists ("name=root:…", made by
// tests/contract/run.sh), and the real driver.
std::vector<Machine> Machines() {
  std::vector<Machine> machines;
  if (const char* roots = std::getenv("NDP_CONTRACT_ROOTS")) {
    for (std::string_view entry : Split(roots, ':')) {
      const auto parts = Split(entry, '=');
      if (parts.size() == 2) machines.push_back({std::string(parts[0]), std::string(parts[1])});
    }
  }
  if (fs::exists("/dev/nvidiactl")) machines.push_back({"real", "/"});
  return machines;
}

class DriverContract : public testing::TestWithParam<Machine> {
 protected:
  void SetUp() override {
    auto opened = DlLoader(GetParam().driver_root).Open();
    ASSERT_THAT(opened, IsOk());
    driver_ = *std::move(opened);
    auto count = driver_->DeviceCount();
    ASSERT_TRUE(count) << count.error().Message();
    for (unsigned index = 0; index < *count; ++index) {
      auto gpu = driver_->ReadGpu(index);
      ASSERT_TRUE(gpu) << gpu.error().Message();
      gpus_.push_back(*std::move(gpu));
    }
  }

  std::shared_ptr<Driver> driver_;
  std::vector<Gpu> gpus_;
};

TEST_P(DriverContract, EveryGpuHasAnIdentityOfItsOwn) {
  std::set<std::string> uuids;
  std::set<std::string> addresses;
  for (const Gpu& gpu : gpus_) {
    EXPECT_TRUE(gpu.uuid.starts_with("GPU-")) << gpu.uuid;
    EXPECT_EQ(NormalizePciBusId(gpu.pci_bus_id), gpu.pci_bus_id);
    EXPECT_TRUE(uuids.insert(gpu.uuid).second);
    EXPECT_TRUE(addresses.insert(gpu.pci_bus_id).second);
    for (const MigDevice& mig : gpu.mig_devices) EXPECT_TRUE(uuids.insert(mig.uuid).second);
  }
}

TEST_P(DriverContract, AGpuIsFoundByItsPciBusId) {
  for (const Gpu& gpu : gpus_) {
    auto identity = driver_->Identify(gpu.pci_bus_id);
    ASSERT_TRUE(identity) << identity.error().Message();
    EXPECT_EQ(identity->uuid, gpu.uuid);
    EXPECT_EQ(identity->index, gpu.index);
  }
}

TEST_P(DriverContract, AnUnknownPciBusIdFails) { EXPECT_FALSE(driver_->Identify("0000:fe:1f.7")); }

TEST_P(DriverContract, AnIndexPastTheCountFails) {
  EXPECT_FALSE(driver_->ReadGpu(static_cast<unsigned>(gpus_.size())));
}

TEST_P(DriverContract, MemoryInUseIsNoMoreThanThereIs) {
  for (const Gpu& gpu : gpus_) {
    auto used = driver_->UsedMemory(gpu.pci_bus_id);
    if (!used && used.error().unsupported()) continue;
    ASSERT_TRUE(used) << used.error().Message();
    EXPECT_LE(*used, gpu.memory_bytes.value_or(0));
  }
}

TEST_P(DriverContract, AHealthyGpuSamplesWithoutFailures) {
  for (const Gpu& gpu : gpus_) {
    auto sample = driver_->Sample(gpu.pci_bus_id);
    ASSERT_TRUE(sample) << sample.error().Message();
    for (const Failure& failure : sample->failures) ADD_FAILURE() << failure.Message();
    EXPECT_EQ(sample->recovery_action.value_or(0), 0);
  }
}

TEST_P(DriverContract, AQuietEventSetTimesOut) {
  auto events = driver_->OpenEvents();
  ASSERT_TRUE(events) << events.error().Message();
  for (const Gpu& gpu : gpus_) {
    auto mask = (*events)->Register(gpu.pci_bus_id, kWanted);
    if (!mask) {
      EXPECT_TRUE(mask.error().unsupported()) << mask.error().Message();
      continue;
    }
    EXPECT_EQ(*mask & ~kWanted, 0U);
  }
  auto event = (*events)->Wait(20ms);
  ASSERT_TRUE(event) << event.error().Message();
  EXPECT_FALSE(event->has_value());
}

TEST_P(DriverContract, TopologyIsSymmetric) {
  for (std::size_t a = 0; a < gpus_.size(); ++a) {
    for (std::size_t b = a + 1; b < gpus_.size(); ++b) {
      auto there = driver_->CommonAncestor(gpus_[a].pci_bus_id, gpus_[b].pci_bus_id);
      auto back = driver_->CommonAncestor(gpus_[b].pci_bus_id, gpus_[a].pci_bus_id);
      ASSERT_EQ(there.has_value(), back.has_value());
      if (there) {
        EXPECT_EQ(*there, *back);
      }
    }
  }
}

TEST_P(DriverContract, LinksCanBeAsked) {
  for (const Gpu& gpu : gpus_) {
    auto links = driver_->ActiveLinks(gpu.pci_bus_id);
    EXPECT_TRUE(links) << links.error().Message();
  }
}

TEST_P(DriverContract, SessionsAreCountedSoOneMayEndBeforeTheOther) {
  {
    auto second = DlLoader(GetParam().driver_root).Open();
    ASSERT_THAT(second, IsOk());
  }
  EXPECT_TRUE(driver_->DeviceCount());
}

TEST_P(DriverContract, TheDriverSaysItsVersion) {
  auto info = driver_->Info();
  ASSERT_TRUE(info) << info.error().Message();
  EXPECT_GE(Split(info->driver_version, '.').size(), 2U) << info->driver_version;
  EXPECT_GT(info->cuda_version, 0);
}

INSTANTIATE_TEST_SUITE_P(On, DriverContract, testing::ValuesIn(Machines()),
                         [](const auto& machine) { return machine.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DriverContract);

}  // namespace
}  // namespace ndp::nvml
