#include "config/keys.h"

#include "doc/json.h"
#include "doc/yaml.h"
#include "testing/result_matchers.h"

namespace ndp::config {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Outcome {
  std::string json;
  KeyFindings findings;
};

Outcome Canonicalize(std::string_view text) {
  auto root = doc::ParseYaml(text);
  EXPECT_THAT(root, IsOk());
  Outcome out;
  out.findings = CanonicalizeKeys(*root);
  out.json = doc::ToJson(*root);
  return out;
}

TEST(CanonicalizeKeysTest, KnownKeysPass) {
  const Outcome out = Canonicalize(
      "version: v1\nflags: {migStrategy: none, gfd: {oneshot: true}}\n"
      "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n"
      "devices: {include: [{minMemory: 1Gi}, 0]}\n");
  EXPECT_THAT(out.findings.unknown, IsEmpty());
  EXPECT_THAT(out.findings.warnings, IsEmpty());
}

TEST(CanonicalizeKeysTest, FoldsCaseAlsoInsideLists) {
  const Outcome out = Canonicalize("SHARING: {TimeSlicing: {resources: [{Name: gpu}]}}");
  EXPECT_EQ(out.json, R"({"sharing":{"timeSlicing":{"resources":[{"name":"gpu"}]}}})");
  EXPECT_THAT(out.findings.warnings,
              ElementsAre(HasSubstr("SHARING (line 1) is read as sharing"),
                          HasSubstr("sharing.TimeSlicing (line 1)"),
                          HasSubstr("sharing.timeSlicing.resources[0].Name (line 1)")));
}

TEST(CanonicalizeKeysTest, UnknownKeysNameTheNearest) {
  EXPECT_THAT(Canonicalize("flags:\n  migStrateggy: none\n").findings.unknown,
              ElementsAre("unknown key flags.migStrateggy (line 2): did you mean "
                          "flags.migStrategy?"));
  EXPECT_THAT(Canonicalize("migStrategy: none\n").findings.unknown,
              ElementsAre("unknown key migStrategy (line 1): did you mean flags.migStrategy?"));
  EXPECT_THAT(Canonicalize("imex: {zzzzzzzzzz: 1}").findings.unknown,
              ElementsAre("unknown key imex.zzzzzzzzzz (line 1): known here are channelIDs, "
                          "required"));
  EXPECT_EQ(Canonicalize("imex: {zzzzzzzzzz: 1}").json, R"({"imex":{}})");
}

TEST(CanonicalizeKeysTest, OfEqualKeysTheLastCounts) {
  const Outcome out = Canonicalize("rescanInterval: 1s\nrescaninterval: 2s\n");
  EXPECT_EQ(out.json, R"({"rescanInterval":"2s"})");
  EXPECT_THAT(out.findings.warnings,
              testing::Contains("rescanInterval is given twice (lines 1 and 2): the last one "
                                "counts"));
}

TEST(CanonicalizeKeysTest, ValuesOfTheWrongShapeAreLeftToTheReaders) {
  EXPECT_EQ(Canonicalize("flags: [1]\nversion: {a: 1}").json, R"({"flags":[1],"version":{"a":1}})");
}

}  // namespace
}  // namespace ndp::config
