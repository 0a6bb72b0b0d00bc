#include "cdi/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ndp::cdi {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string SpecText(const std::string& device) {
  return "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"" + device +
         "\"\n  containerEdits: {env: [A=b]}\n";
}

class RegistryTest : public testing::Test {
 protected:
  Registry Read() { return ReadRegistry({dir_ / "etc", dir_ / "run"}); }
  TempDir dir_;
};

TEST_F(RegistryTest, TheLaterFolderWins) {
  dir_.Write("etc/a.yaml", SpecText("0"));
  dir_.Write("run/b.json", SpecText("0"));
  dir_.Write("run/c.txt", SpecText("1"));
  Registry registry = Read();
  EXPECT_THAT(registry.names, ElementsAre(Pair("nvidia.com/gpu=0", dir_ / "run/b.json")));
  EXPECT_THAT(registry.problems, IsEmpty());
}

TEST_F(RegistryTest, TwoFilesOfOneFolderDefineNothing) {
  dir_.Write("run/a.yaml", SpecText("0"));
  dir_.Write("run/b.yaml", SpecText("0"));
  Registry registry = Read();
  EXPECT_THAT(registry.names, IsEmpty());
  EXPECT_THAT(registry.problems, ElementsAre(AllOf(HasSubstr("a.yaml"), HasSubstr("b.yaml"))));
}

TEST_F(RegistryTest, ABadFileIsNamedAndLeftOut) {
  dir_.Write("run/a.yaml", SpecText("0"));
  dir_.Write("run/bad.json", "{\"kind\":");
  dir_.Write("run/old.yaml", "cdiVersion: 0.9.0\nkind: a.b/c\n");
  Registry registry = Read();
  EXPECT_EQ(registry.names.size(), 1U);
  EXPECT_THAT(registry.problems,
              ElementsAre(HasSubstr("bad.json"), HasSubstr("old.yaml: cdiVersion")));
}

}  // namespace
}  // namespace ndp::cdi
