#include "sim_profile/profile.h"

#include "testing/result_matchers.h"

namespace ndp::sim_profile {
namespace {

using testing::HasSubstr;

constexpr char kSmall[] = R"(driver: 570.86.15
cuda: "12.8"
gpus:
- name: Test GPU
  memoryMiB: 1024
  computeCapability: "9.0"
  architecture: 9
  pciId: 0x233010DE
  pci: ["1B:00", "0008:01:00"]
  numa: [0, 1]
)";

std::string With(std::string_view line) { return kSmall + std::string(line) + "\n"; }

TEST(ProfileTest, EveryBuiltInProfileIsRight) {
  for (const BuiltIn& built_in : BuiltInProfiles()) {
    const auto profile = ParseProfile(built_in.name, built_in.yaml);
    ASSERT_THAT(profile, IsOk());
    EXPECT_FALSE(profile->description.empty()) << built_in.name;
    // A Tegra may have NVML, a server must.
    if (profile->platform != Platform::kTegra) {
      EXPECT_EQ(profile->platform == Platform::kNvml, !profile->gpus.empty()) << built_in.name;
    }
  }
}

TEST(ProfileTest, TheMachinesPeopleAskForAreThere) {
  for (const char* name :
       {"dgx-a100", "dgx-h100", "dgx-b200", "dgx1-v100", "hgx-16", "pcie-t4", "gb200", "mixed",
        "jetson", "thor", "wsl", "driver-container", "gke", "none"}) {
    EXPECT_THAT(LoadProfile(name), IsOk()) << name;
  }
  EXPECT_THAT(LoadProfile("dgx-h101"), IsErrorThat(Code::kNotFound, HasSubstr("dgx-h100")));
  EXPECT_THAT(LoadProfile("./mine.yaml"),
              IsErrorThat(Code::kNotFound, HasSubstr("./mine.yaml: cannot be read as a profile: No "
                                                     "such file or directory")));
  EXPECT_FALSE(LoadProfile("/").ok());
}

TEST(ProfileTest, AnEntryStandsForEachAddressItLists) {
  const auto profile = ParseProfile("small", kSmall);
  ASSERT_THAT(profile, IsOk());
  ASSERT_EQ(profile->gpus.size(), 2U);
  EXPECT_EQ(profile->gpus[0].pci.bus, 0x1BU);
  EXPECT_EQ(profile->gpus[1].pci.domain, 8U);
  EXPECT_EQ(profile->gpus[1].numa, 1);
  EXPECT_EQ(profile->cuda, 12080U);
}

TEST(ProfileTest, MistakesAreNamedWithTheirLine) {
  EXPECT_THAT(ParseProfile("p", With("colour: green")),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 11: unknown key \"colour\"")));
  EXPECT_THAT(ParseProfile("p", With("links: { pairs: [[0, 5, 1]] }")),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("a pair is")));
  EXPECT_THAT(ParseProfile("p", With("platform: solaris")),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("nvml, tegra, wsl or none")));
  EXPECT_THAT(ParseProfile("p", With("switchGroups: yes")),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("switchGroups must be a list")));
  EXPECT_THAT(ParseProfile("p", "driver: ../x\ngpus: []"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("a version such as 570.86.15")));
  EXPECT_THAT(ParseProfile("p", "gpus: ["), IsErrorThat(Code::kInvalidArgument, HasSubstr("line")));
  EXPECT_THAT(ParseProfile("p", "- 1"), IsErrorThat(Code::kInvalidArgument, HasSubstr("mapping")));
}

}  // namespace
}  // namespace ndp::sim_profile
