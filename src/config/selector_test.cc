#include "config/selector.h"

#include "config/settings.h"
#include "testing/result_matchers.h"

namespace ndp::config {
namespace {
using testing::HasSubstr;

TEST(ParseDeviceNameTest, TellsTheFormsApart) {
  EXPECT_THAT(ParseDeviceName("0"), IsOkAnd(Condition(GpuIndex{0})));
  EXPECT_THAT(ParseDeviceName("1:0"), IsOkAnd(Condition(MigIndex{1, 0})));
  EXPECT_THAT(ParseDeviceName("GPU-5f3a"), IsOkAnd(Condition(DeviceUuid{"GPU-5f3a"})));
  EXPECT_THAT(ParseDeviceName("MIG-5f3a"), IsOkAnd(Condition(DeviceUuid{"MIG-5f3a"})));
  EXPECT_THAT(ParseDeviceName("00000000:0B:00.0"), IsOkAnd(Condition(PciBusId{"0000:0b:00.0"})));
}

TEST(ParseDeviceNameTest, RefusesWhatNamesNoDevice) {
  for (const char* text :
       {"", "some", "-1", "0:", ":0", "1:0:2", "99999", "GPU-5f3a::3", "*A100*"}) {
    EXPECT_THAT(ParseDeviceName(text), IsErrorThat(Code::kInvalidArgument, HasSubstr("an index")))
        << text;
  }
}

TEST(ParseMemoryTest, TakesQuantities) {
  EXPECT_THAT(ParseMemory("40Gi"), IsOkAnd(40ULL << 30));
  EXPECT_THAT(ParseMemory("512Mi"), IsOkAnd(512ULL << 20));
  EXPECT_THAT(ParseMemory("80G"), IsOkAnd(80'000'000'000ULL));
  EXPECT_THAT(ParseMemory("1024"), IsOkAnd(1024ULL));
}

TEST(ParseMemoryTest, RefusesNothingNegativeAndOverflow) {
  for (const char* text : {"", "0", "0Gi", "-1Gi", "Gi", "1.5Gi", "40GB", "99999999999999Ti"}) {
    EXPECT_THAT(ParseMemory(text), IsErrorThat(Code::kInvalidArgument, HasSubstr("40Gi"))) << text;
  }
}

TEST(SelectorTextTest, SaysWhatItSelectsAndWhere) {
  const DeviceSelector selector{.where = {.key_path = "devices.include[0]", .line = 3},
                                .conditions = {NamePattern{"*A100*"}, MinMemory{40ULL << 30}}};
  EXPECT_EQ(selector.Text(), "name \"*A100*\" and at least 40Gi");
  EXPECT_EQ(selector.where.Text(), "devices.include[0] (line 3)");
  EXPECT_EQ((Where{.key_path = "sharing", .line = 0}).Text(), "sharing");
}

}  // namespace
}  // namespace ndp::config
