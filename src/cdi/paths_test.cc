#include "cdi/paths.h"

#include <gtest/gtest.h>

namespace ndp::cdi {
namespace {

TEST(PathsTest, JoinKeepsBelowTheRoot) {
  EXPECT_EQ(JoinPath("/", "/usr/bin"), "/usr/bin");
  EXPECT_EQ(JoinPath("/run/nvidia/driver", "/usr/bin"), "/run/nvidia/driver/usr/bin");
  EXPECT_EQ(JoinPath("/run/nvidia/driver", "/../../etc"), "/run/nvidia/driver/etc");
}

TEST(PathsTest, PartsOfPaths) {
  EXPECT_EQ(ParentPath("/a/b"), "/a");
  EXPECT_EQ(ParentPath("/a"), "/");
  EXPECT_EQ(BaseName("/a/b"), "b");
  EXPECT_EQ(TargetPath("/dev/dri/by-path/x", "../card1"), "/dev/dri/card1");
  EXPECT_EQ(TargetPath("/dev/dri/by-path/x", "/dev/dri/card1"), "/dev/dri/card1");
}

TEST(PathsTest, OnlyUtf8WithoutControlCharactersIsPrintable) {
  EXPECT_TRUE(IsPrintablePath("/usr/lib/libü.so"));
  EXPECT_FALSE(IsPrintablePath("/a\nb"));
  EXPECT_FALSE(IsPrintablePath("/a\xff"));
  EXPECT_FALSE(IsPrintablePath("/a\xc3"));
}

}  // namespace
}  // namespace ndp::cdi
