#include "sim_kubelet/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/result_matchers.h"
#include "testing/temp_dir.h"

namespace ndp::sim_kubelet {
namespace {

TEST(Claim, IsOfOneAtATime) {
  const TempDir dir;
  {
    const auto first = Claim::Of(dir.path());
    ASSERT_TRUE(first.ok());
    const auto second = Claim::Of(dir.path());
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code(), Code::kUnavailable);
    EXPECT_THAT(second.error().message(), testing::HasSubstr("a kubelet stand-in plays here"));
  }
  EXPECT_TRUE(Claim::Of(dir.path()).ok());
}

TEST(Claim, MakesTheFolderAsTheKubeletDoes) {
  const TempDir dir;
  ASSERT_TRUE(Claim::Of(dir.path() / "deep").ok());
  EXPECT_EQ(std::filesystem::status(dir.path() / "deep/kubelet").permissions(),
            std::filesystem::perms(0750));
}

}  // namespace
}  // namespace ndp::sim_kubelet
