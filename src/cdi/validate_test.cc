#include "cdi/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cdi/text.h"
#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Spec Valid() {
  Spec spec{.version = "0.7.0", .kind = "nvidia.com/gpu"};
  spec.devices = {{.name = "a", .edits = {.env = {"A=b"}}}};
  return spec;
}

Spec With(Edits edits) {
  Spec spec = Valid();
  spec.devices[0].edits = std::move(edits);
  return spec;
}

TEST(ValidateTest, TakesWhatIsRight) { EXPECT_THAT(Validate(Valid()), IsOk()); }

TEST(ValidateTest, ASpecHasDevices) {
  Spec spec = Valid();
  spec.devices.clear();
  EXPECT_THAT(Validate(spec),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("invalid spec, no devices")));
}

TEST(ValidateTest, ADeviceHasEdits) {
  EXPECT_THAT(Validate(With({})),
              IsErrorThat(Code::kInvalidArgument,
                          AllOf(HasSubstr("device a"), HasSubstr("empty device edits"))));
}

TEST(ValidateTest, DeviceNamesAreUnique) {
  Spec spec = Valid();
  spec.devices.push_back(spec.devices[0]);
  EXPECT_THAT(Validate(spec), IsErrorThat(Code::kInvalidArgument, HasSubstr("twice")));
}

TEST(ValidateTest, TheVersionCoversWhatIsUsed) {
  Spec spec = With({.additional_gids = {44}});
  spec.version = "0.6.0";
  EXPECT_THAT(Validate(spec), IsErrorThat(Code::kInvalidArgument, HasSubstr("0.7.0")));
  spec.version = "0.9.0";
  EXPECT_THAT(Validate(spec), IsErrorThat(Code::kInvalidArgument, HasSubstr("0.9.0")));
}

TEST(ValidateTest, WhatWasReadIsNamedByItsLine) {
  constexpr std::string_view kText = R"(cdiVersion: 0.7.0
kind: nvidia.com/gpu
devices:
  - name: a
    containerEdits:
      env: [A=b]
      deviceNodes:
        - path: /dev/a
        - path: /dev/b
          permissions: rwm
      hooks:
        - hookName: createContainer
          path: /bin/true
      mounts:
        - hostPath: /a
          containerPath: /a
  - name: b
    containerEdits:
      env: [C=d]
containerEdits:
  mounts:
    - hostPath: /c
      containerPath: /c
)";
  const auto refused = [&](std::string_view good, std::string_view bad, const char* line) {
    std::string text(kText);
    text.replace(text.find(good), good.size(), bad);
    const auto spec = ParseSpec(text);
    ASSERT_THAT(spec, IsOk());
    EXPECT_THAT(Validate(*spec), IsErrorThat(Code::kInvalidArgument, testing::StartsWith(line)));
  };
  refused("A=b", "A", "line 6: device a: env");
  refused("/dev/a", "''", "line 8: device a: device node");
  refused("rwm", "x", "line 9: device a: device node /dev/b");
  refused("createContainer", "create", "line 12: device a: hook");
  refused("hostPath: /a", "hostPath: ''", "line 15: device a: mount");
  refused("name: b", "name: a", "line 17: device a appears twice");
  refused("name: b", "name: '/'", "line 17: ");
  refused("hostPath: /c", "hostPath: ''", "line 22: containerEdits: mount");
  refused("kind: nvidia.com/gpu", "kind: gpu", "");
}

TEST(ValidateTest, EachWrongEntryIsNamed) {
  const auto refused = [](const Edits& edits, const char* text) {
    EXPECT_THAT(Validate(With(edits)),
                IsErrorThat(Code::kInvalidArgument, AllOf(HasSubstr("device a"), HasSubstr(text))));
  };
  refused({.env = {"=b"}}, "\"=b\"");
  refused({.device_nodes = {{.path = ""}}}, "without a path");
  refused({.device_nodes = {{.path = "/dev/a", .type = "x"}}}, "/dev/a");
  refused({.device_nodes = {{.path = "/dev/a", .permissions = "rwx"}}}, "rwx");
  refused({.hooks = {{.hook_name = "start", .path = "/h"}}}, "\"start\"");
  refused({.hooks = {{.hook_name = "prestart"}}}, "without a path");
  refused({.hooks = {{.hook_name = "prestart", .path = "/h", .env = {"A"}}}}, "\"A\"");
  refused({.mounts = {{.host_path = "/a"}}}, "/a");
  refused({.intel_rdt = IntelRdt{.clos_id = "a/b"}}, "a/b");
}

TEST(ValidateTest, NetDevicesAreUniqueOnBothSides) {
  Spec spec = With({.net_devices = {{"eth0", "a"}, {"eth0", "b"}}});
  spec.version = "1.1.0";
  EXPECT_THAT(Validate(spec), IsErrorThat(Code::kInvalidArgument, HasSubstr("eth0")));
}

TEST(ValidateTest, AnnotationKeysAreQualifiedNames) {
  Spec spec = Valid();
  spec.annotations = {{"gpu.nvidia.com/coherent", "true"}};
  EXPECT_THAT(Validate(spec), IsOk());
  spec.annotations = {{"-x", "true"}};
  EXPECT_THAT(Validate(spec), IsErrorThat(Code::kInvalidArgument, HasSubstr("-x")));
}

}  // namespace
}  // namespace ndp::cdi
