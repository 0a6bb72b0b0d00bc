#include "config/option.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"
#include "config/load.h"
#include "testing/result_matchers.h"

namespace ndp::config {
namespace {
using testing::HasSubstr;

constexpr Program kPrograms[] = {Program::kDevicePlugin, Program::kFeatureDiscovery,
                                 Program::kMpsControlDaemon, Program::kConfigManager};

TEST(OptionTableTest, FlagsAndVariablesAreUniqueInEachProgram) {
  for (const Program program : kPrograms) {
    std::set<std::string_view> flags;
    std::set<std::string_view> variables;
    for (const Option* option : OptionsOf(program)) {
      if (!option->flag.empty()) {
        EXPECT_TRUE(flags.insert(option->flag).second) << option->flag;
      }
      for (std::string_view alias : option->aliases) EXPECT_TRUE(flags.insert(alias).second);
      for (std::string_view name : option->EnvOf(program)) {
        EXPECT_TRUE(variables.insert(name).second) << name;
      }
    }
  }
}

TEST(OptionTableTest, KeysAreUniqueAndEveryOptionIsComplete) {
  std::set<std::string_view> keys;
  for (const Option& option : AllOptions()) {
    EXPECT_FALSE(option.id().empty());
    EXPECT_FALSE(option.help.empty()) << option.id();
    EXPECT_FALSE(option.DefaultText().empty()) << option.id();
    EXPECT_NE(option.programs, 0U) << option.id();
    if (!option.key.empty()) {
      EXPECT_TRUE(keys.insert(option.key).second) << option.key;
    }
  }
}

// The table's defaults and those of the plain structs are one: whoever builds Settings by hand, as
// tests do, has what a program without options has.
TEST(OptionTableTest, DefaultsAreThoseOfSettings) {
  for (const Program program : {Program::kDevicePlugin, Program::kFeatureDiscovery}) {
    const auto loaded = Load({.program = program, .env = [](const std::string&) {
                                return std::optional<std::string>();
                              }});
    ASSERT_THAT(loaded, IsOk());
    EXPECT_TRUE(loaded->warnings.empty());
    for (const Option& option : AllOptions()) {
      EXPECT_EQ(option.bind.show(loaded->settings), option.bind.show(Settings{})) << option.id();
    }
  }
}

std::string Code(std::string_view text) { return text.empty() ? "–" : fmt::format("`{}`", text); }

// An option's row in docs/configuration.md.
std::string Row(const Option& option) {
  std::string flags = option.flag.empty() ? "–" : Code(fmt::format("--{}", option.flag));
  for (std::string_view alias : option.aliases) {
    flags += ", " + Code(fmt::format("{}{}", alias.size() == 1 ? "-" : "--", alias));
  }
  std::vector<std::string> variables;
  if (!option.gfd_env.empty()) variables.push_back(Code(option.gfd_env));
  for (std::string_view name : option.env) variables.push_back(Code(name));
  const std::string fallback =
      option.fallback_text.empty() ? Code(option.fallback) : std::string(option.fallback_text);
  std::string help(option.help);
  if (!option.bind.choices.empty()) {
    const bool list = option.bind.kind == Kind::kList;
    help += fmt::format(". {} of {}", list ? "Any" : "One", fmt::join(option.bind.choices, ", "));
  }
  return fmt::format("| {} | {} | {} | {} | {} |", flags,
                     variables.empty() ? "–" : fmt::format("{}", fmt::join(variables, ", ")),
                     Code(option.key), fallback, help);
}

TEST(OptionTableTest, DocumentationHasEveryRow) {
  std::ifstream file(NDP_DOCS "/configuration.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (const Option& option : AllOptions()) {
    EXPECT_THAT(text.str(), HasSubstr(Row(option) + "\n")) << "ROW " << Row(option);
  }
}

TEST(OptionTableTest, DocumentationHasNoOtherOption) {
  std::set<std::string> rows;
  for (const Option& option : AllOptions()) rows.insert(Row(option));
  std::ifstream file(NDP_DOCS "/configuration.md");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `--") || line.starts_with("| – |")) {
      EXPECT_TRUE(rows.contains(line)) << line;
    }
  }
}

}  // namespace
}  // namespace ndp::config
