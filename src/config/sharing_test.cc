#include "config/sections.h"
#include "doc/yaml.h"
#include "testing/result_matchers.h"

namespace ndp::config {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Read {
  Result<Sharing> sharing = Sharing{};
  std::vector<std::string> ignored;
  std::vector<std::string> warnings;
};

Read ReadText(const std::string& text, bool naming_on) {
  const auto root = doc::ParseYaml(text);
  EXPECT_THAT(root, IsOk());
  NamingSwitch naming{.on = naming_on};
  Read out;
  out.sharing = ReadSharing(Node(&*root, "sharing", 1), naming, out.warnings);
  out.ignored = naming.ignored;
  return out;
}

// `entries` are lines of timeSlicing.resources, the first on line 3.
Read ReadEntries(const std::string& entries, bool naming_on = true) {
  return ReadText("timeSlicing:\n  resources:\n" + entries, naming_on);
}

constexpr char kTwoEntries[] =
    "  - {name: nvidia.com/gpu, rename: gpu.dev, devices: [0, \"1:0\", GPU-5f3a], replicas: 4}\n"
    "  - {name: nvidia.com/gpu, devices: 2, replicas: 1}\n";

TEST(ReadSharingTest, HonoursRenameAndDevicesWithNaming) {
  const Read read = ReadEntries(kTwoEntries);
  ASSERT_THAT(read.sharing, IsOk());
  EXPECT_EQ(read.sharing->strategy, SharingStrategy::kTimeSlicing);
  ASSERT_THAT(read.sharing->resources, SizeIs(2));
  const SharedResource& dev = read.sharing->resources[0];
  EXPECT_EQ(dev.where.Text(), "sharing.timeSlicing.resources[0] (line 3)");
  EXPECT_EQ(dev.name, "nvidia.com/gpu");
  EXPECT_EQ(dev.offered_as, "nvidia.com/gpu.dev");
  EXPECT_EQ(dev.replicas, 4);
  const auto& devices = std::get<DeviceList>(dev.devices).devices;
  ASSERT_THAT(devices, SizeIs(3));
  EXPECT_EQ(devices[1].conditions[0], Condition(MigIndex{1, 0}));
  EXPECT_EQ(read.sharing->resources[1].devices, SharedDevices(DeviceCount{2}));
  EXPECT_THAT(read.ignored, IsEmpty());
}

TEST(ReadSharingTest, BlanksRenameAndDevicesWithoutNaming) {
  const Read read =
      ReadEntries("  - {name: gpu, rename: gpu.dev, devices: [0], replicas: 4}\n", false);
  ASSERT_THAT(read.sharing, IsOk());
  ASSERT_THAT(read.sharing->resources, SizeIs(1));
  EXPECT_EQ(read.sharing->resources[0].offered_as, "nvidia.com/gpu");
  EXPECT_EQ(read.sharing->resources[0].devices, SharedDevices(AllDevices{}));
  EXPECT_THAT(read.ignored,
              ElementsAre("sharing.timeSlicing.resources[0].rename (line 3): nvidia.com/gpu.dev",
                          "sharing.timeSlicing.resources[0].devices (line 3)"));
}

TEST(ReadSharingTest, WithoutNamingRenameByDefaultWinsOverRename) {
  const std::string text =
      "timeSlicing:\n  renameByDefault: true\n  resources:\n"
      "  - {name: gpu, rename: gpu.dev, replicas: 4}\n  - {name: mig-1g.10gb, replicas: 1}\n";
  const Read off = ReadText(text, false);
  ASSERT_THAT(off.sharing, IsOk());
  EXPECT_EQ(off.sharing->resources[0].offered_as, "nvidia.com/gpu.shared");
  EXPECT_EQ(off.sharing->resources[1].offered_as, "nvidia.com/mig-1g.10gb");  // not shared
  const Read on = ReadText(text, true);
  ASSERT_THAT(on.sharing, IsOk());
  EXPECT_EQ(on.sharing->resources[0].offered_as, "nvidia.com/gpu.dev");
}

TEST(ReadSharingTest, DevicesAllIsNothingThatNamingWouldChange) {
  const Read read = ReadEntries("  - {name: gpu, devices: all, replicas: 4}\n", false);
  ASSERT_THAT(read.sharing, IsOk());
  EXPECT_THAT(read.ignored, IsEmpty());
}

TEST(ReadSharingTest, WithoutNamingDeadDeviceKeysComeToTheLargerNumber) {
  const Read read = ReadEntries(
      "  - {name: gpu, devices: [0], replicas: 2}\n  - {name: gpu, devices: [1], replicas: 4}\n",
      false);
  ASSERT_THAT(read.sharing, IsOk());
  ASSERT_THAT(read.sharing->resources, SizeIs(1));
  EXPECT_EQ(read.sharing->resources[0].replicas, 4);
  EXPECT_THAT(read.warnings, ElementsAre(AllOf(HasSubstr("resources[0] (line 3)"),
                                               HasSubstr("resources[1] (line 4)"))));
}

TEST(ReadSharingTest, OneReplicaIsNotShared) {
  const Read read = ReadEntries("  - {name: gpu, replicas: 1}\n");
  ASSERT_THAT(read.sharing, IsOk());
  EXPECT_EQ(read.sharing->strategy, SharingStrategy::kNone);
}

TEST(ReadSharingTest, MpsWinsIfItReplicatesAnything) {
  const std::string slices = "timeSlicing: {resources: [{name: gpu, replicas: 4}]}\n";
  const Read both = ReadText(slices + "mps: {resources: [{name: gpu, replicas: 2}]}\n", false);
  ASSERT_THAT(both.sharing, IsOk());
  EXPECT_EQ(both.sharing->strategy, SharingStrategy::kMps);
  EXPECT_EQ(both.sharing->resources[0].replicas, 2);
  EXPECT_THAT(both.warnings, ElementsAre(HasSubstr("sharing.timeSlicing (line 1) is ignored")));
  const Read idle = ReadText(slices + "mps: {resources: [{name: gpu, replicas: 1}]}\n", false);
  ASSERT_THAT(idle.sharing, IsOk());
  EXPECT_EQ(idle.sharing->strategy, SharingStrategy::kTimeSlicing);
}

TEST(ReadSharingTest, RequestsAboveOneFailByDefaultUnderMpsOnly) {
  const auto fails = [](const std::string& text) {
    const Read read = ReadText(text, false);
    return read.sharing.ok() && read.sharing->fail_requests_greater_than_one;
  };
  const std::string resources = "resources: [{name: gpu, replicas: 2}]}";
  EXPECT_FALSE(fails("timeSlicing: {" + resources));
  EXPECT_TRUE(fails("timeSlicing: {failRequestsGreaterThanOne: true, " + resources));
  EXPECT_TRUE(fails("mps: {" + resources));
  EXPECT_FALSE(fails("mps: {failRequestsGreaterThanOne: false, " + resources));
}

struct BadSharing {
  std::string entries;
  std::string message;
};

TEST(ReadSharingTest, MalformedEntriesAreRefusedWithNamingOnAndOff) {
  const BadSharing cases[] = {
      {"  - 5\n", "resources[0] (line 3): want a map with name and replicas, got a number"},
      {"  - {replicas: 2}\n", "resources[0] (line 3): has no name"},
      {"  - {name: gpu}\n", "resources[0] (line 3): has no replicas"},
      {"  - {name: gpu, replicas: 0}\n", "resources[0].replicas (line 3): 0 replicas"},
      {"  - {name: gpu, replicas: -1}\n", "replicas (line 3): -1 replicas"},
      {"  - {name: gpu, replicas: 100001}\n", "100001 replicas"},
      {"  - {name: gpu, replicas: two}\n", "want a whole number, got a text \"two\""},
      {"  - {name: gpu, replicas: 1.5}\n", "want a whole number, got a number (1.5)"},
      {"  - {name: Gpu, replicas: 2}\n", "invalid resource name \"Gpu\""},
      {"  - {name: example.com/gpu, replicas: 2}\n", "invalid resource name"},
      {"  - {name: gpu, replicas: 2, rename: a_b}\n", "resources[0].rename (line 3): invalid"},
      {"  - {name: gpu, replicas: 2, rename: " + std::string(60, 'a') + "}\n", "want at most 63"},
      {"  - {name: gpu, replicas: 2, devices: some}\n",
       "resources[0].devices (line 3): want all, a count of 1 or more, or a list"},
      {"  - {name: gpu, replicas: 2, devices: 0}\n", "0 devices"},
      {"  - {name: gpu, replicas: 2, devices: -3}\n", "-3 devices"},
      {"  - {name: gpu, replicas: 2, devices: 99999}\n", "99999 devices"},
      {"  - {name: gpu, replicas: 2, devices: []}\n", "an empty list"},
      {"  - {name: gpu, replicas: 2, devices: [first]}\n",
       "resources[0].devices[0] (line 3): \"first\" names no device"},
      {"  - {name: gpu, replicas: 2, devices: {a: 1}}\n", "got a map"},
  };
  for (const BadSharing& bad : cases) {
    for (const bool naming : {false, true}) {
      EXPECT_THAT(ReadEntries(bad.entries, naming).sharing,
                  IsErrorThat(Code::kInvalidArgument, HasSubstr(bad.message)))
          << bad.entries;
    }
  }
}

TEST(ReadSharingTest, ContradictionsNameBothEntries) {
  const BadSharing cases[] = {
      {"  - {name: gpu, devices: [0, 1], rename: a, replicas: 2}\n"
       "  - {name: gpu, devices: [1], rename: b, replicas: 2}\n",
       "resources[0].devices[1] (line 3) and sharing.timeSlicing.resources[1].devices[0] (line 4) "
       "both name device 1"},
      {"  - {name: gpu, devices: [GPU-a, GPU-a], replicas: 2}\n", "both name device GPU-a"},
      {"  - {name: gpu, rename: a, replicas: 2}\n  - {name: gpu, rename: b, replicas: 2}\n",
       "both take all devices of nvidia.com/gpu"},
      {"  - {name: gpu, devices: [0], replicas: 2}\n  - {name: gpu, devices: [1], replicas: 4}\n",
       "give nvidia.com/gpu different numbers of replicas (2 and 4)"},
  };
  for (const BadSharing& bad : cases) {
    EXPECT_THAT(ReadEntries(bad.entries).sharing,
                IsErrorThat(Code::kInvalidArgument, HasSubstr(bad.message)))
        << bad.entries;
  }
  EXPECT_THAT(
      ReadEntries("  - {name: gpu, replicas: 2}\n  - {name: gpu, replicas: 4}\n", false).sharing,
      IsErrorThat(Code::kInvalidArgument, HasSubstr("different numbers of replicas")));
}

TEST(ReadSharingTest, TheSharedNameMustFitToo) {
  const std::string name(63 - 11 - 3, 'a');  // fits with the prefix, not with .shared
  EXPECT_THAT(ReadText("timeSlicing: {renameByDefault: true, resources: [{name: " + name +
                           ", replicas: 2}]}",
                       false)
                  .sharing,
              IsErrorThat(Code::kInvalidArgument, HasSubstr("want at most 63")));
}

}  // namespace
}  // namespace ndp::config
