#include "inventory/mig_minors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::inventory {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MigMinorsTest, FindsInstancesByGpuMinor) {
  const MigMinors minors =
      ParseMigMinors("config 1\nmonitor 2\ngpu1/gi1/access 147\ngpu1/gi1/ci0/access 148\n");
  EXPECT_EQ(minors.GpuInstance(1, 1), 147U);
  EXPECT_EQ(minors.ComputeInstance(1, 1, 0), 148U);
  EXPECT_EQ(minors.GpuInstance(0, 1), std::nullopt);
}

TEST(MigMinorsTest, BadLinesCostThemselvesOnly) {
  std::vector<std::string> bad;
  const MigMinors minors = ParseMigMinors(
      "gpu0/gi0/access  3\ngpu0/gix/access 4\ngpu0/gi1/access 99999999\nrubbish\ngpu0/gi2/access "
      "21\n",
      &bad);
  EXPECT_EQ(minors.by_name.size(), 1U);
  EXPECT_EQ(minors.GpuInstance(0, 2), 21U);
  EXPECT_THAT(bad, ElementsAre(HasSubstr("line 1:"), HasSubstr("line 2:"), HasSubstr("line 3:"),
                               HasSubstr("line 4: \"rubbish\"")));
}

}  // namespace
}  // namespace ndp::inventory
