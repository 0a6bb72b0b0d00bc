#include "doc/yaml.h"

#include <fmt/format.h>

#include "doc/json.h"
#include "testing/result_matchers.h"

namespace ndp::doc {
namespace {
using testing::HasSubstr;
using testing::Not;

std::string AsJson(std::string_view yaml) {
  const auto value = ParseYaml(yaml);
  return value.ok() ? ToJson(*value) : value.error().message();
}

TEST(ParseYamlTest, GivesEachScalarItsKind) {
  EXPECT_EQ(AsJson("[1, -2, 0x10, 1.5, 1e3, yes, Off, ~, null, '1', \"yes\", 1:0, 1g.10gb, 010]"),
            R"([1,-2,16,1.5,1000.0,true,false,null,null,"1","yes","1:0","1g.10gb","010"])");
}

TEST(ParseYamlTest, KeepsHowAScalarWasWritten) {
  const auto value = ParseYaml("yes");
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(value->Text(), "yes");
}

TEST(ParseYamlTest, KnowsTheLineOfEveryKeyAndValue) {
  const auto value = ParseYaml("# comment\na: 1\nb:\n  - x\n  - y\nc:\n");
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(value->Find("a")->line(), 2);
  EXPECT_EQ(value->entries()[1].line, 3);
  EXPECT_EQ(value->Find("b")->items()[1].line(), 5);
  EXPECT_EQ(value->Find("c")->line(), 6);
}

TEST(ParseYamlTest, ReadsJson) {
  const auto value = ParseYaml("{\n  \"a\": [1, true],\n  \"b\": {\"c\": \"yes\"}\n}");
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(ToJson(*value), R"({"a":[1,true],"b":{"c":"yes"}})");
  EXPECT_EQ(value->Find("b")->line(), 3);
}

TEST(ParseYamlTest, EmptyTextIsNull) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n"}) {
    EXPECT_THAT(ParseYaml(text), IsOkAnd(Value())) << text;
  }
}

TEST(ParseYamlTest, ResolvesAliasesAndMergeKeys) {
  EXPECT_EQ(AsJson("base: &b {x: 1, y: 2}\nall:\n  <<: *b\n  x: 3\nsame: *b\n"),
            R"({"base":{"x":1,"y":2},"all":{"x":3,"y":2},"same":{"x":1,"y":2}})");
}

TEST(ParseYamlTest, RefusesWhatExpandsWithoutEnd) {
  EXPECT_THAT(ParseYaml("a: 1\nb: &b [*b]\n"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 2: nested more than 64 deep")));
  const std::string deep(20'000, '[');
  EXPECT_THAT(ParseYaml("a:\n  " + deep),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 2: nested more than 64 deep")));
  std::string wide = "a: &a " + std::string(1 << 20, 'x') + "\nb: [";
  for (int i = 0; i < 40'000; ++i) wide += "*a, ";
  EXPECT_THAT(ParseYaml(wide + "]\n"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("expands to more than 16 MiB")));
}

TEST(ParseYamlTest, RefusesNulCharactersAndTellsOfTabs) {
  using namespace std::string_literals;
  EXPECT_THAT(ParseYaml("a: 1\nb: \"x\\0y\"\n"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 2: a text with a NUL")));
  EXPECT_THAT(ParseYaml("a: 1\nb: x\0y\n"s),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 2: a NUL")));
  EXPECT_EQ(AsJson("\xFF\xFE"
                   "a\0:\0 \0"
                   "1\0"s),
            R"({"a":1})")
      << "UTF-16";
  EXPECT_THAT(ParseYaml("a:\n\tb: 1\n"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("not with tabs")));
  EXPECT_THAT(ParseYaml("a: [1\n"), IsErrorThat(Code::kInvalidArgument, Not(HasSubstr("tabs"))));
}

TEST(ParseYamlTest, KeepsBothOfTwoEqualKeys) {
  const auto value = ParseYaml("a: 1\na: 2\n");
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(value->entries().size(), 2U);
}

TEST(ParseYamlTest, ErrorsNameTheLine) {
  EXPECT_THAT(ParseYaml("a: 1\nb: [1\nc: 2\n"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 3")));
  EXPECT_THAT(ParseYaml("a: 1\n---\nb: 2\n"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 2: a second document")));
  EXPECT_THAT(ParseYaml("a: 1\n? [x]\n: 2\n"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 2: a key must be a text")));
  EXPECT_THAT(ParseYaml("x: 1\n<<: 3\n"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("line 2: a merge key")));
}

TEST(ParseYamlTest, RefusesWhatNestsOrExpandsWithoutEnd) {
  EXPECT_THAT(ParseYaml(std::string(100, '[') + std::string(100, ']')),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("deep")));
  EXPECT_THAT(ParseYaml(std::string(100'000, '[')), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ParseYaml("&a [*a]"), IsErrorThat(Code::kInvalidArgument, HasSubstr("deep")));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string from = "*a" + std::to_string(i - 1);
    const std::string to = "a" + std::to_string(i);
    bomb += fmt::format("{0}: &{0} [", to);
    for (int j = 0; j < 10; ++j) bomb += (j > 0 ? ", " : "") + from;
    bomb += "]\n";
  }
  EXPECT_THAT(ParseYaml(bomb), IsErrorThat(Code::kInvalidArgument, HasSubstr("50000 values")));
}

// yaml-cpp's LoadAll never comes back from these.
TEST(ParseYamlTest, RefusesACommaWhereNoListIs) {
  for (const char* text : {",", ", a", ",{a: b}", ",x: y", ",\"a\":v", "a: b\n---\n, c\n"}) {
    EXPECT_THAT(ParseYaml(text), IsErrorThat(Code::kInvalidArgument, HasSubstr("\",\""))) << text;
  }
}

TEST(ToYamlTest, IsReadBackAsItWas) {
  Value map = Value::Map();
  for (const char* text : {"plain", "yes", "10", "~", "", "1.5", "a: b", "#x", "two\nlines", "-",
                           "null", "é", "010", "<<", "*a", "0x1", "1:30", "y"}) {
    map.Set(std::string("key ") + text, text);
    map.Set(text, text);
  }
  map.Set("list", std::vector<Value>{1, 2.0, true, Value(), Value::List(), Value::Map()});
  const std::string yaml = ToYaml(map);
  EXPECT_THAT(ParseYaml(yaml), IsOkAnd(map)) << yaml;
}

TEST(ToYamlTest, IsBlockStyle) {
  Value map = Value::Map();
  map.Set("a", std::vector<Value>{1, "x"});
  EXPECT_EQ(ToYaml(map), "a:\n  - 1\n  - x\n");
}

}  // namespace
}  // namespace ndp::doc
