#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp {
namespace {
using testing::ElementsAre;

TEST(TextTest, SplitKeepsEmptyParts) {
  EXPECT_THAT(Split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(Split("", ','), ElementsAre(""));
}

TEST(TextTest, NumbersMustBeWhole) {
  EXPECT_EQ(ParseUnsigned("42"), 42U);
  EXPECT_EQ(ParseUnsigned("-1"), std::nullopt);
  EXPECT_EQ(ParseUnsigned("4 "), std::nullopt);
  EXPECT_EQ(ParseUnsigned("99999999999999999999"), std::nullopt);
  EXPECT_EQ(ParseSigned("-7"), -7);
  EXPECT_EQ(ParseHex("0x10DE"), 0x10DEU);
}

TEST(TextTest, WildcardIsTheOnlySpecialCharacter) {
  EXPECT_TRUE(WildcardMatch("*A100*", "NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(WildcardMatch("*", ""));
  EXPECT_TRUE(WildcardMatch("1g.10gb", "1g.10gb"));
  EXPECT_FALSE(WildcardMatch("1g.10gb", "1gx10gb"));
  EXPECT_TRUE(WildcardMatch("a*b*c", "aXbbYc"));
  EXPECT_FALSE(WildcardMatch("a*b", "aXbY"));
}

TEST(TextTest, NearestFindsTypingErrors) {
  constexpr std::string_view kKeys[] = {"migStrategy", "failOnInitError", "plugin"};
  EXPECT_EQ(Nearest("migStategy", kKeys), "migStrategy");
  EXPECT_EQ(Nearest("MIGSTRATEGY", kKeys), "migStrategy");
  EXPECT_EQ(Nearest("zebra", kKeys), std::nullopt);
}

TEST(TextTest, PciBusIdsOfEveryLengthAreOneDevice) {
  EXPECT_EQ(NormalizePciBusId("00000000:0B:00.0"), "0000:0b:00.0");
  EXPECT_EQ(NormalizePciBusId("0b:00.0"), "0000:0b:00.0");
  EXPECT_EQ(NormalizePciBusId("00010000:0B:00.0"), "00010000:0b:00.0");
  EXPECT_EQ(NormalizePciBusId("GPU-1"), std::nullopt);
  EXPECT_EQ(NormalizePciBusId("0:0:0"), std::nullopt);
}

TEST(TextTest, Dns1123) {
  EXPECT_TRUE(IsDns1123Subdomain("mig-1g.10gb.me"));
  EXPECT_FALSE(IsDns1123Subdomain("Gpu"));
  EXPECT_FALSE(IsDns1123Subdomain("gpu-"));
  EXPECT_FALSE(IsDns1123Subdomain("a..b"));
}

}  // namespace
}  // namespace ndp
