#include "base/path.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace ndp {
namespace {

TEST(PathTest, CleaningEndsAtTheRoot) {
  EXPECT_EQ(CleanPath("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(CleanPath("../../etc"), "/etc");
  EXPECT_EQ(CleanPath(""), "/");
}

TEST(PathTest, ARelativePathIsTakenFromTheFolderOfTheProcess) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(AbsoluteFrom("node/root"), here + "/node/root");
  EXPECT_EQ(AbsoluteFrom("./node//root/"), here + "/node/root");
  EXPECT_EQ(AbsoluteFrom("."), here);
}

TEST(PathTest, EmptyAndAbsoluteStayAsTheyAre) {
  EXPECT_EQ(AbsoluteFrom(""), "");
  EXPECT_EQ(AbsoluteFrom("/"), "/");
  EXPECT_EQ(AbsoluteFrom("/a//b/"), "/a//b/");
}

}  // namespace
}  // namespace ndp
