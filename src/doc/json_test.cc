#include "doc/json.h"

#include <limits>

#include "testing/result_matchers.h"

namespace ndp::doc {
namespace {
using testing::HasSubstr;

TEST(ParseJsonTest, BuildsTheTreeInOrder) {
  constexpr std::string_view kText = R"({"b":[1,-2,1.5,true,null,"x",[],{}],"a":{"c":"d"}})";
  const auto value = ParseJson(kText);
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(ToJson(*value), kText);
}

TEST(ParseJsonTest, KnowsTheLineOfEveryValue) {
  const auto value = ParseJson("{\n \"a\": 5\n,\n \"b\":\n 17\n, \"c\": [\n\"x\"\n]}");
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(value->Find("a")->line(), 2);
  EXPECT_EQ(value->entries()[1].line, 4);
  EXPECT_EQ(value->Find("b")->line(), 5);
  EXPECT_EQ(value->Find("c")->line(), 6);
  EXPECT_EQ(value->Find("c")->items()[0].line(), 7);
}

TEST(ParseJsonTest, ErrorsNameTheLine) {
  EXPECT_THAT(ParseJson("{\n \"a\": 1,\n \"b\": }"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 3: ")));
  for (const char* text : {"", "{", "[1,]", "{'a': 1}", "1 2", "nul", "\"\x80\""}) {
    EXPECT_THAT(ParseJson(text), IsErrorThat(Code::kInvalidArgument, HasSubstr("line 1: ")))
        << text;
  }
}

TEST(ParseJsonTest, RefusesEndlessNesting) {
  EXPECT_THAT(ParseJson(std::string(100'000, '[')),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("deep")));
}

TEST(ParseJsonTest, IntegersPastTheRangeAreFloats) {
  EXPECT_THAT(ParseJson("18446744073709551615"), IsOkAnd(Value(18446744073709551615.0)));
  EXPECT_THAT(ParseJson("9223372036854775807"),
              IsOkAnd(Value(std::numeric_limits<std::int64_t>::max())));
}

TEST(ToJsonTest, EscapesAndReplaces) {
  EXPECT_EQ(ToJson("a\"b\n\x01"), R"("a\"b\n\u0001")");
  EXPECT_EQ(ToJson("x\x80y"), "\"x\xEF\xBF\xBDy\"");
  EXPECT_EQ(ToJson(std::numeric_limits<double>::infinity()), "null");
}

TEST(ToJsonTest, IndentsOnRequest) {
  Value map = Value::Map();
  map.Set("a", std::vector<Value>{1});
  EXPECT_EQ(ToJson(map, 2), "{\n  \"a\": [\n    1\n  ]\n}");
}

}  // namespace
}  // namespace ndp::doc
