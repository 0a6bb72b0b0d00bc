#include "health/xid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace ndp::health {
namespace {
using Xids = config::Health::Xids;

void ExpectClass(XidClass expected, std::initializer_list<std::uint64_t> xids) {
  for (std::uint64_t xid : xids) {
    EXPECT_EQ(XidClassName(CatalogueClass(xid)), XidClassName(expected)) << "XID " << xid;
  }
}

TEST(CatalogueClassTest, EveryDefaultIsWhereTheDocumentationSays) {
  ExpectClass(XidClass::kIgnore, {14,  37,  38,  44,  63,  66,  67,  92,  93,  106, 107, 108, 121,
                                  137, 141, 152, 153, 157, 160, 161, 162, 163, 164, 165, 171, 172});
  ExpectClass(
      XidClass::kApplication,
      {8,   11,  13,  25,  31,  32,  39,  40,  41,  43,  45,  60,  68,  69,  70,  71,  72,
       75,  76,  77,  80,  82,  83,  84,  85,  86,  88,  89,  94,  96,  97,  98,  99,  100,
       101, 102, 103, 104, 105, 109, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 139});
  ExpectClass(XidClass::kDriver, {144, 145, 146, 147, 148, 149, 150, 154, 159});
  ExpectClass(XidClass::kReset, {46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 151, 155,
                                 156, 158, 167, 169});
  ExpectClass(XidClass::kFault,
              {0, 1, 7, 9, 54, 61, 65, 78, 81, 87, 142, 166, 168, 170, 173, 500, 1ULL << 40});
}

TEST(XidMeaningTest, KnowsTheCommonOnesAndNoOthers) {
  EXPECT_EQ(XidMeaning(79), "GPU has fallen off the bus");
  EXPECT_EQ(XidMeaning(8), "GPU stopped processing");
  EXPECT_EQ(XidMeaning(172), "uncorrectable SRAM error");
  EXPECT_EQ(XidMeaning(9), "");
  EXPECT_EQ(XidMeaning(65536 + 79), "");
}

TEST(XidTableTest, UpstreamPolicyMarksAllButItsSix) {
  const XidTable table(Xids{.policy = config::XidPolicy::kUpstream});
  for (std::uint64_t xid : {13, 31, 43, 45, 68, 109}) {
    EXPECT_EQ(table.Classify(xid), XidClass::kApplication) << xid;
  }
  for (std::uint64_t xid : {14, 63, 94, 154, 8, 1000}) {
    EXPECT_EQ(table.Classify(xid), XidClass::kFault) << xid;
  }
  EXPECT_EQ(table.Classify(79), XidClass::kReset);
}

TEST(XidTableTest, ConfigurationMovesSingleXids) {
  const XidTable table(Xids{.moved = {{79, XidClass::kIgnore}, {13, XidClass::kReset}}});
  EXPECT_EQ(table.Classify(79), XidClass::kIgnore);
  EXPECT_EQ(table.Classify(13), XidClass::kReset);
  EXPECT_EQ(table.Classify(31), XidClass::kApplication);
}

TEST(XidTableTest, DisabledXidsAreIgnored) {
  const XidTable table(Xids{.moved = {{48, XidClass::kReset}}, .disabled = {.xids = {48, 61}}});
  EXPECT_EQ(table.Classify(48), XidClass::kIgnore);
  EXPECT_EQ(table.Classify(61), XidClass::kIgnore);
  EXPECT_EQ(table.Classify(79), XidClass::kReset);
  EXPECT_TRUE(table.watches_events());
  EXPECT_FALSE(table.all_disabled());
}

TEST(XidTableTest, EnabledWinsOverEverythingDisabled) {
  const XidTable table(Xids{.disabled = {.all = true}, .enabled = {.xids = {79, 13}}});
  EXPECT_EQ(table.Classify(79), XidClass::kReset);
  EXPECT_EQ(table.Classify(13), XidClass::kFault);
  EXPECT_EQ(table.Classify(48), XidClass::kIgnore);
  EXPECT_TRUE(table.watches_events());
  EXPECT_TRUE(table.all_disabled());
}

TEST(XidTableTest, EnabledRaisesHarmlessClassesToFault) {
  const XidTable table(Xids{.enabled = {.xids = {14, 31, 154, 61, 95}}});
  for (std::uint64_t xid : {14, 31, 154, 61}) {
    EXPECT_EQ(table.Classify(xid), XidClass::kFault) << xid;
  }
  EXPECT_EQ(table.Classify(95), XidClass::kReset);
  EXPECT_EQ(table.Classify(13), XidClass::kApplication);
}

TEST(XidTableTest, EnableAllMakesEveryXidCount) {
  const XidTable table(Xids{.disabled = {.xids = {79}}, .enabled = {.all = true}});
  EXPECT_EQ(table.Classify(43), XidClass::kFault);
  EXPECT_EQ(table.Classify(79), XidClass::kReset);
}

TEST(XidTableTest, DisableAllWatchesNothing) {
  const XidTable table(Xids{.disabled = {.all = true}});
  EXPECT_FALSE(table.watches_events());
  EXPECT_EQ(table.Classify(79), XidClass::kIgnore);
}

}  // namespace
}  // namespace ndp::health
