#include "base/one_line.h"

#include <gtest/gtest.h>

namespace ndp {
namespace {

TEST(OneLineTest, AMessageIsOneLineThatNoTerminalActsOn) {
  EXPECT_EQ(OneLine("want \"uuid\", größer"), "want \"uuid\", größer");
  EXPECT_EQ(OneLine(std::string_view("a\nb\x1b[31m\0\x7f", 9)), "a\\nb\\x1b[31m\\x00");
  const std::string line = OneLine("begin " + std::string(1'000'000, 'x') + " end");
  EXPECT_LT(line.size(), 5000U);
  EXPECT_TRUE(line.starts_with("begin x") && line.ends_with("x end"));
  std::string umlauts;
  for (int i = 0; i < 5000; ++i) umlauts += "ä";
  for (const char* begin : {"", "x"}) {
    std::string cut = OneLine(begin + umlauts);
    cut.erase(cut.find("…"), std::string_view("…").size());
    EXPECT_EQ(cut.size() % 2, std::string_view(begin).size()) << "half a character";
  }
}

}  // namespace
}  // namespace ndp
