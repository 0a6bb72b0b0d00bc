#include "cdi/driver_root.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "testing/fake_node.h"
#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::ElementsAre;
using testing::Optional;

class DriverRootTest : public testing::Test {
 protected:
  FakeNode node_;
  DriverRoot root_{node_.fs()};
};

TEST_F(DriverRootTest, AbsoluteLinksStayInTheRoot) {
  node_.File("/opt/nvidia/lib/libcuda.so.570");
  node_.Link("/usr/lib64", "/opt/nvidia/lib");
  EXPECT_THAT(root_.Resolve("/usr/lib64/libcuda.so.570"),
              Optional(std::string("/opt/nvidia/lib/libcuda.so.570")));
}

TEST_F(DriverRootTest, LinksThatClimbEndAtTheRoot) {
  node_.File("/etc/passwd", "inside");
  node_.Link("/usr/lib64/evil", "../../../../../../etc/passwd");
  EXPECT_THAT(root_.Resolve("/usr/lib64/evil"), Optional(std::string("/etc/passwd")));
  EXPECT_THAT(root_.Read("/usr/lib64/evil"), IsOkAnd("inside"));
}

TEST_F(DriverRootTest, LinksToTheHostFindNothing) {
  node_.Link("/usr/lib64/shadow", "/etc/shadow");
  EXPECT_EQ(root_.Resolve("/usr/lib64/shadow"), std::nullopt);
  EXPECT_THAT(root_.Read("/usr/lib64/shadow"), IsError(Code::kNotFound));
}

TEST_F(DriverRootTest, APathToFollowFromOutsideStaysInTheRoot) {
  node_.File("/opt/nvidia/smi");
  node_.File("/usr/bin/plain");
  node_.Link("/bin", "usr/bin");
  node_.Link("/usr/bin/near", "plain");
  node_.Link("/usr/bin/absolute", "/opt/nvidia/smi");
  node_.Link("/usr/bin/climbs", "../../../../opt/nvidia/smi");
  EXPECT_EQ(root_.Followable("/bin/plain"), "/bin/plain");
  EXPECT_EQ(root_.Followable("/bin/near"), "/bin/near");
  EXPECT_EQ(root_.Followable("/bin/absolute"), "/opt/nvidia/smi");
  EXPECT_EQ(root_.Followable("/usr/bin/climbs"), "/opt/nvidia/smi");
  EXPECT_EQ(root_.Followable("/nothing"), "/nothing");
}

TEST_F(DriverRootTest, FoldersByPatternInAnyPart) {
  node_.Folder("/usr/lib/a/nvidia");
  node_.Folder("/usr/lib/b/nvidia/x");
  node_.Folder("/usr/lib/c/other");
  node_.File("/usr/lib/d");
  node_.Link("/usr/lib/e", "a");
  EXPECT_THAT(root_.GlobFolders("/usr/lib/*/nvidia"),
              ElementsAre("/usr/lib/a/nvidia", "/usr/lib/b/nvidia", "/usr/lib/e/nvidia"));
  EXPECT_THAT(root_.GlobFolders("/usr/*/b/nvidia/*"), ElementsAre("/usr/lib/b/nvidia/x"));
  EXPECT_THAT(root_.GlobFolders("/usr/lib/a"), ElementsAre("/usr/lib/a"));
  EXPECT_THAT(root_.GlobFolders("/usr/lib/d"), testing::IsEmpty());
  EXPECT_THAT(root_.GlobFolders("/"), ElementsAre("/"));
}

// Patterns that multiply: 40 * 40 names, again and again.
TEST_F(DriverRootTest, PatternsThatWouldTakeMinutesEnd) {
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 40; ++j) node_.Folder(fmt::format("/{}/{}", i, j));
  }
  for (int i = 0; i < 20; ++i) root_.GlobFolders("/*/*");
  EXPECT_THAT(root_.notes(),
              testing::Contains(testing::HasSubstr("20000 names were looked at before")));
  EXPECT_THAT(root_.GlobFolders("/1/2"), ElementsAre("/1/2")) << "no pattern, no limit";
}

TEST_F(DriverRootTest, MoreFilesThanADriverHasAreLeftOutAndSaid) {
  for (int i = 0; i < 1030; ++i) node_.File(fmt::format("/lib/lib{}.so.1", i));
  EXPECT_EQ(root_.Glob("/lib", "lib*.so.1").size(), 1024U);
  EXPECT_THAT(root_.notes(), ElementsAre(testing::HasSubstr("more than 1024 files")));
}

TEST_F(DriverRootTest, LoopsEnd) {
  node_.Link("/a", "b");
  node_.Link("/b", "a");
  node_.Link("/deep", "deep/deep");
  EXPECT_EQ(root_.Resolve("/a"), std::nullopt);
  EXPECT_EQ(root_.Resolve("/deep/x"), std::nullopt);
  EXPECT_LE(root_.LinkChain("/a").size(), 50U);
}

TEST_F(DriverRootTest, ReadsLinksBelowLinkedFolders) {
  node_.Link("/usr/lib64/libcuda.so.1", "libcuda.so.570");
  node_.Link("/lib64", "usr/lib64");
  EXPECT_THAT(root_.ReadLink("/lib64/libcuda.so.1"), Optional(std::string("libcuda.so.570")));
  EXPECT_EQ(root_.ReadLink("/lib64"), "usr/lib64");
  EXPECT_EQ(root_.ReadLink("/usr/lib64"), std::nullopt);
}

TEST_F(DriverRootTest, GlobSortsAndTakesFilesAlone) {
  node_.File("/lib/b.so.1");
  node_.File("/lib/.a.so.1");
  node_.Folder("/lib/folder.so.1");
  node_.Link("/lib/c.so.1", "b.so.1");
  node_.Link("/lib/broken.so.1", "nothing");
  EXPECT_THAT(root_.Glob("/lib", "*.so.1"),
              ElementsAre("/lib/.a.so.1", "/lib/b.so.1", "/lib/c.so.1"));
  EXPECT_THAT(root_.Glob("/lib", "b.so.1"), ElementsAre("/lib/b.so.1"));
  EXPECT_THAT(root_.Glob("/none", "*"), ElementsAre());
}

TEST_F(DriverRootTest, NamesThatJsonCannotHoldAreNoMatches) {
  node_.File("/lib/lib\xff.so.1");
  node_.File("/lib/lib\n.so.1");
  EXPECT_THAT(root_.Glob("/lib", "*.so.1"), ElementsAre());
}

TEST_F(DriverRootTest, TellsProgramsFromFiles) {
  node_.File("/bin/text");
  node_.Program("/bin/nvidia-smi");
  EXPECT_TRUE(root_.IsExecutable("/bin/nvidia-smi"));
  EXPECT_FALSE(root_.IsExecutable("/bin/text"));
  EXPECT_FALSE(root_.IsExecutable("/bin"));
  EXPECT_TRUE(root_.IsDirectory("/bin"));
}

TEST_F(DriverRootTest, AFifoInPlaceOfALibraryDoesNotBlock) {
  ASSERT_EQ(mkfifo(node_.Path("/libcuda.so.1").c_str(), 0600), 0);
  EXPECT_THAT(root_.Soname("/libcuda.so.1"), IsError(Code::kInvalidArgument));
}

}  // namespace
}  // namespace ndp::cdi
