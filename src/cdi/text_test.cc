#include "cdi/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Spec Everything() {
  Spec spec{.version = "1.1.0", .kind = "nvidia.com/gpu", .annotations = {{"a", "b"}}};
  Device device{.name = "0:1", .annotations = {{"c", "d"}}};
  device.edits = {.env = {"A=b"},
                  .device_nodes = {{.path = "/dev/a",
                                    .host_path = "/dev/b",
                                    .type = "c",
                                    .major = 195,
                                    .minor = 1,
                                    .file_mode = 438,
                                    .permissions = "rwm",
                                    .uid = 1,
                                    .gid = 44}},
                  .net_devices = {{"eth0", "net0"}},
                  .hooks = {{.hook_name = "createContainer",
                             .path = "/h",
                             .args = {"h", "x"},
                             .env = {"E=1"},
                             .timeout = 5}},
                  .mounts = {{"/h", "/c", {"ro"}, "bind"}},
                  .intel_rdt = IntelRdt{.clos_id = "x",
                                        .l3_cache_schema = "L3",
                                        .mem_bw_schema = "MB",
                                        .schemata = {"s"},
                                        .enable_monitoring = true},
                  .additional_gids = {44}};
  spec.devices = {device};
  spec.edits.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  return spec;
}

TEST(TextTest, JsonHasUpstreamsKeyOrder) {
  EXPECT_EQ(
      ToJson(Everything()),
      R"({"cdiVersion":"1.1.0","kind":"nvidia.com/gpu","annotations":{"a":"b"},"devices":[{"name":"0:1",)"
      R"("annotations":{"c":"d"},"containerEdits":{"env":["A=b"],"deviceNodes":[{"path":"/dev/a",)"
      R"("hostPath":"/dev/b","type":"c","major":195,"minor":1,"fileMode":438,"permissions":"rwm",)"
      R"("uid":1,"gid":44}],"netDevices":[{"hostInterfaceName":"eth0","name":"net0"}],)"
      R"("hooks":[{"hookName":"createContainer","path":"/h","args":["h","x"],"env":["E=1"],)"
      R"("timeout":5}],"mounts":[{"hostPath":"/h","containerPath":"/c","options":["ro"],)"
      R"("type":"bind"}],"intelRdt":{"closID":"x","l3CacheSchema":"L3","memBwSchema":"MB",)"
      R"("schemata":["s"],"enableMonitoring":true},"additionalGids":[44]}}],)"
      R"("containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=void"]}})");
}

TEST(TextTest, ZeroAndEmptyAreLeftOutExceptCommonEdits) {
  Spec spec{.version = "0.3.0", .kind = "nvidia.com/gpu"};
  spec.devices = {{.name = "0", .edits = {.device_nodes = {{.path = "/dev/nvidia0"}}}}};
  EXPECT_EQ(ToJson(spec),
            R"({"cdiVersion":"0.3.0","kind":"nvidia.com/gpu","devices":[{"name":"0",)"
            R"("containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}}],"containerEdits":{}})");
}

TEST(TextTest, JsonEscapesAsGoDoes) {
  Spec spec{.kind = "<a>&\"\x01"};
  EXPECT_THAT(ToJson(spec), HasSubstr(R"("\u003ca\u003e\u0026\"\u0001")"));
}

TEST(TextTest, BothFormsAreReadBack) {
  EXPECT_THAT(ParseSpec(ToJson(Everything())), IsOkAnd(Everything()));
  EXPECT_THAT(ToYaml(Everything()), testing::StartsWith("---\n"));
  EXPECT_THAT(ParseSpec(ToYaml(Everything())), IsOkAnd(Everything()));
}

TEST(TextTest, UnknownKeysRefuseTheFile) {
  EXPECT_THAT(
      ParseSpec("cdiVersion: 0.5.0\nkind: a/b\ndevices:\n- name: x\n  containerEdits:\n"
                "    deviceNode: []\n"),
      IsErrorThat(Code::kInvalidArgument,
                  AllOf(HasSubstr("line 6"), HasSubstr("devices[0].containerEdits.deviceNode"),
                        HasSubstr("deviceNodes?"))));
}

TEST(TextTest, ValuesOfTheWrongKindRefuseTheFile) {
  EXPECT_THAT(ParseSpec("cdiVersion: [1]"),
              IsErrorThat(Code::kInvalidArgument, AllOf(HasSubstr("line 1"), HasSubstr("a text"))));
  EXPECT_THAT(ParseSpec("devices: {}"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("devices: want a list")));
  EXPECT_THAT(ParseSpec("devices: [{containerEdits: {additionalGids: [-1]}}]"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("additionalGids[0]")));
  EXPECT_THAT(ParseSpec("devices: [{containerEdits: {deviceNodes: [{gid: 4294967296}]}}]"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("gid")));
  EXPECT_THAT(ParseSpec("[]"), IsErrorThat(Code::kInvalidArgument, HasSubstr("document")));
}

}  // namespace
}  // namespace ndp::cdi
