#include "doc/value.h"

#include "testing/result_matchers.h"

namespace ndp::doc {
namespace {
using testing::ElementsAre;
using testing::Eq;
using testing::Optional;

TEST(ValueTest, HoldsOneKindOnly) {
  EXPECT_TRUE(Value().is_null());
  EXPECT_THAT(Value(true).AsBool(), Optional(true));
  EXPECT_THAT(Value(7U).AsInt(), Optional(7));
  EXPECT_THAT(Value(7).AsFloat(), Optional(7.0));
  EXPECT_THAT(Value("x").AsString(), Optional(std::string("x")));
  EXPECT_THAT(Value("7").AsInt(), Eq(std::nullopt));
  EXPECT_THAT(Value(1).AsBool(), Eq(std::nullopt));
  EXPECT_THAT(Value(1.5).AsInt(), Eq(std::nullopt));
}

TEST(ValueTest, TextIsTheUsualFormUnlessItWasWritten) {
  EXPECT_EQ(Value(false).Text(), "false");
  EXPECT_EQ(Value(-3).Text(), "-3");
  EXPECT_EQ(Value().Text(), "");
  Value written(16);
  written.set_source_text("0x10");
  EXPECT_EQ(written.Text(), "0x10");
  Value map = Value::Map();
  map.Set("count", written);
  EXPECT_EQ(map.TextAt("count"), "0x10");
  EXPECT_EQ(map.TextAt("none"), "");
  EXPECT_EQ(written.TextAt("count"), "");
}

TEST(ValueTest, SetReplacesInPlaceAndKeepsOrder) {
  Value map = Value::Map();
  map.Set("b", 1);
  map.Set("a", 2);
  map.Set("b", 3);
  ASSERT_EQ(map.entries().size(), 2U);
  EXPECT_EQ(map.entries()[0].key, "b");
  EXPECT_EQ(map.entries()[0].value, Value(3));
  EXPECT_EQ(map.Find("c"), nullptr);
}

TEST(ValueTest, FindGivesTheLastOfTwo) {
  Value map = Value::Map();
  map.entries().push_back({"a", 1, Value(1)});
  map.entries().push_back({"a", 2, Value(2)});
  ASSERT_NE(map.Find("a"), nullptr);
  EXPECT_EQ(*map.Find("a"), Value(2));
}

TEST(ValueTest, EqualityIgnoresLines) {
  Value a = std::vector<Value>{1, "x"};
  Value b = a;
  b.set_line(12);
  EXPECT_EQ(a, b);
  b.Append(true);
  EXPECT_NE(a, b);
  EXPECT_THAT(b.items(), ElementsAre(Value(1), Value("x"), Value(true)));
}

}  // namespace
}  // namespace ndp::doc
