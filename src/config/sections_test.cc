#include "config/sections.h"

#include "doc/yaml.h"
#include "testing/result_matchers.h"

namespace ndp::config {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

doc::Value Yaml(std::string_view text) {
  auto value = doc::ParseYaml(text);
  EXPECT_THAT(value, IsOk());
  return value.ok() ? *std::move(value) : doc::Value();
}

Result<NameRules> Rules(std::string_view text, NamingSwitch& naming) {
  const doc::Value root = Yaml(text);
  return ReadNameRules(Node(&root, "resources", 1), naming);
}

TEST(ReadNameRulesTest, KeepsOrderAndAddsThePrefix) {
  NamingSwitch naming{.on = true};
  const auto rules = Rules(
      "gpus:\n- {pattern: '*A100*', name: a100}\n- {pattern: '*', name: nvidia.com/other}\n"
      "mig:\n- {pattern: 1g.10gb, name: mig-small}\n",
      naming);
  ASSERT_THAT(rules, IsOk());
  ASSERT_THAT(rules->gpus, SizeIs(2));
  EXPECT_EQ(rules->gpus[0].resource, "nvidia.com/a100");
  EXPECT_EQ(rules->gpus[1].where.Text(), "resources.gpus[1] (line 3)");
  ASSERT_THAT(rules->mig, SizeIs(1));
  EXPECT_EQ(rules->mig[0].pattern, "1g.10gb");
}

TEST(ReadNameRulesTest, WithoutNamingSaysWhatWouldChange) {
  NamingSwitch naming;
  const auto rules = Rules("gpus: [{pattern: '*A100*', name: a100}]", naming);
  ASSERT_THAT(rules, IsOk());
  EXPECT_THAT(rules->gpus, IsEmpty());
  EXPECT_THAT(naming.ignored, ElementsAre("resources.gpus[0] (line 1): \"*A100*\" as "
                                          "nvidia.com/a100"));
}

TEST(ReadNameRulesTest, RefusesMalformedRules) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "resources (line 1): want a map"},
      {"gpus: a100", "resources.gpus (line 1): want a list"},
      {"gpus: [a100]", "resources.gpus[0] (line 1): want a map with pattern and name"},
      {"gpus: [{name: a100}]", "has no pattern"},
      {"gpus: [{pattern: '*'}]", "has no name"},
      {"gpus: [{pattern: '', name: a}]", "resources.gpus[0].pattern (line 1): empty"},
      {"gpus: [{pattern: '*', name: A100}]", "resources.gpus[0].name (line 1): invalid resource"},
      {"gpus: [{pattern: '*', name: a}, {pattern: '*', name: b}]",
       "resources.gpus[0] (line 1) and resources.gpus[1] (line 1) have the same pattern"},
  };
  for (const auto& [text, message] : cases) {
    NamingSwitch naming{.on = true};
    EXPECT_THAT(Rules(text, naming), IsErrorThat(Code::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

Result<Devices> ReadDevicesText(std::string_view text) {
  const doc::Value root = Yaml(text);
  return ReadDevices(Node(&root, "devices", 1));
}

TEST(ReadDevicesTest, TakesEverySelector) {
  const auto devices = ReadDevicesText(
      "include:\n- 0\n- GPU-5f3a\n- 0000:07:00.0\n- '*A100*'\n"
      "- {name: Tesla T4, minMemory: 10Gi}\n- {index: 3}\n- {pciBusId: '0B:00.0'}\n"
      "- {uuid: GPU-1}\nexclude:\n- 7\n");
  ASSERT_THAT(devices, IsOk());
  ASSERT_THAT(devices->include, SizeIs(8));
  EXPECT_THAT(devices->include[0].conditions, ElementsAre(Condition(GpuIndex{0})));
  EXPECT_THAT(devices->include[1].conditions, ElementsAre(Condition(DeviceUuid{"GPU-5f3a"})));
  EXPECT_THAT(devices->include[2].conditions, ElementsAre(Condition(PciBusId{"0000:07:00.0"})));
  EXPECT_THAT(devices->include[3].conditions, ElementsAre(Condition(NamePattern{"*A100*"})));
  EXPECT_THAT(devices->include[4].conditions,
              ElementsAre(Condition(NamePattern{"Tesla T4"}), Condition(MinMemory{10ULL << 30})));
  EXPECT_THAT(devices->include[6].conditions, ElementsAre(Condition(PciBusId{"0000:0b:00.0"})));
  EXPECT_EQ(devices->exclude[0].where.Text(), "devices.exclude[0] (line 11)");
}

TEST(ReadDevicesTest, RefusesMalformedSelectors) {
  const std::pair<const char*, const char*> cases[] = {
      {"include: 0", "devices.include (line 1): want a list"},
      {"include: [Tesla]", "devices.include[0] (line 1): \"Tesla\" selects no GPU"},
      {"include: ['1:0']", "is a MIG device: want a whole GPU"},
      {"include: [MIG-5f3a]", "is a MIG device"},
      {"include: [-1]", "selects no GPU"},
      {"include: [{}]", "devices.include[0] (line 1): selects by nothing"},
      {"include: [null]", "want a selector"},
      {"include: [{minMemory: lots}]", "devices.include[0].minMemory (line 1): \"lots\""},
      {"include: [{index: GPU-1}]", "want an index"},
      {"include: [{uuid: 1}]", "want a UUID"},
      {"include: [{pciBusId: x}]", "is no PCI bus id"},
      {"include: [0, 0]", "devices.include[0] (line 1) and devices.include[1] (line 1) select"},
      {"include: [0]\nexclude: [0]", "devices.include[0] (line 1) and devices.exclude[0] (line 2)"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ReadDevicesText(text), IsErrorThat(Code::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

Result<std::map<std::uint64_t, XidClass>> Moved(std::string_view text) {
  const doc::Value root = Yaml(text);
  return ReadMovedXids(Node(&root, "health.xids", 1));
}

TEST(ReadMovedXidsTest, MovesSingleXids) {
  EXPECT_THAT(Moved("ignore: [13]\nreset: [94, 31]\n"),
              IsOkAnd(ElementsAre(Pair(13, XidClass::kIgnore), Pair(31, XidClass::kReset),
                                  Pair(94, XidClass::kReset))));
}

TEST(ReadMovedXidsTest, RefusesTwoClassesAndWhatIsNoXid) {
  EXPECT_THAT(Moved("ignore: [13]\nfault: [13]\n"),
              IsErrorThat(Code::kInvalidArgument,
                          HasSubstr("health.xids.ignore[0] (line 1) and health.xids.fault[0] "
                                    "(line 2) both name XID 13")));
  for (const char* text : {"fault: [0]", "fault: [-1]", "fault: [x]", "fault: 13"}) {
    EXPECT_THAT(Moved(text), IsErrorThat(Code::kInvalidArgument, HasSubstr("health.xids.fault")))
        << text;
  }
}

}  // namespace
}  // namespace ndp::config
