#include "cdi/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::HasSubstr;
using testing::Pair;

TEST(NamesTest, DeviceNamesMayBeOneCharacterAndHoldColons) {
  EXPECT_THAT(ValidateDeviceName("0"), IsOk());
  EXPECT_THAT(ValidateDeviceName("0:1"), IsOk());
  EXPECT_THAT(ValidateDeviceName("GPU-3f1c6a52-7d0e-4b9b-9a61-5c2e8d4f7a10"), IsOk());
  EXPECT_THAT(ValidateDeviceName(""), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ValidateDeviceName("GPU-"), IsError(Code::kInvalidArgument));
}

TEST(NamesTest, LegacyMigUuidsAreNoDeviceNames) {
  EXPECT_THAT(ValidateDeviceName("MIG-GPU-1/3/0"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("MIG-GPU-1/3/0")));
}

TEST(NamesTest, VendorAndClassStartWithALetter) {
  EXPECT_THAT(ValidateKind("k8s.device-plugin.nvidia.com/gpu"), IsOk());
  EXPECT_THAT(ValidateKind("8s.nvidia.com/gpu"), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ValidateKind("nvidia.com"), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ValidateKind("nvidia.com/"), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ValidateKind("nvidia.com/gpu:0"), IsError(Code::kInvalidArgument));
}

TEST(NamesTest, QualifiedNamesAreReadBack) {
  EXPECT_EQ(OwnName("gpu", "GPU-1"), "k8s.device-plugin.nvidia.com/gpu=GPU-1");
  EXPECT_THAT(ParseQualifiedName("nvidia.com/gpu=0:1"),
              IsOkAnd(QualifiedName{"nvidia.com", "gpu", "0:1"}));
  EXPECT_THAT(ParseQualifiedName("nvidia.com=gpu/0"), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ParseQualifiedName("gpu=0"), IsError(Code::kInvalidArgument));
}

TEST(NamesTest, OneAnnotationNamesAllDevices) {
  const std::string names[] = {OwnName("gpu", "GPU-1"), OwnName("gds", "all")};
  EXPECT_THAT(
      Annotation("cdi.k8s.io/", "5e0b8c1e-3f0a-4f7c-9a55-2a6d0c9b7e11", names),
      IsOkAnd(Pair("cdi.k8s.io/nvidia-device-plugin_5e0b8c1e-3f0a-4f7c-9a55-2a6d0c9b7e11",
                   "k8s.device-plugin.nvidia.com/gpu=GPU-1,k8s.device-plugin.nvidia.com/gds=all")));
}

TEST(NamesTest, AnnotationKeysKeepKubernetesLimits) {
  EXPECT_THAT(Annotation("cdi.k8s.io/", std::string(43, 'x'), {}),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("63")));
  EXPECT_THAT(Annotation("cdi.k8s.io/", "a/b", {}), IsOkAnd(Pair(HasSubstr("_a_b"), "")));
  const std::string unqualified[] = {"GPU-1"};
  EXPECT_THAT(Annotation("cdi.k8s.io/", "x", unqualified), IsError(Code::kInvalidArgument));
}

TEST(NamesTest, AnnotationPrefixIsADomainAndASlash) {
  EXPECT_THAT(ValidateAnnotationPrefix("cdi.k8s.io/"), IsOk());
  EXPECT_THAT(ValidateAnnotationPrefix("cdi.k8s.io"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("cdi.k8s.io/")));
  EXPECT_THAT(ValidateAnnotationPrefix("/"), IsError(Code::kInvalidArgument));
}

}  // namespace
}  // namespace ndp::cdi
