#include "cdi/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_node.h"
#include "testing/ld_cache_file.h"
#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kDebian = "/usr/lib/x86_64-linux-gnu";

class LibrariesTest : public testing::Test {
 protected:
  // A pass of its own each time: a pass remembers what it saw.
  Result<DriverLibraries> Discover(const std::string& version) {
    discovery_.emplace(options_, node_.fs(), node_.fs());
    LibraryLocator locator(discovery_->driver());
    return DiscoverLibraries(*discovery_, locator, version);
  }
  std::vector<std::string> Links() {
    auto libraries = Discover("570.1");
    EXPECT_THAT(libraries, IsOk());
    return LibraryLinks(*discovery_, libraries->files);
  }

  FakeNode node_;
  Options options_;
  std::optional<Discovery> discovery_;
};

TEST_F(LibrariesTest, EveryLibraryOfTheVersionIsTaken) {
  node_.Library(kDebian, "libcuda.so.570.1", "libcuda.so.1");
  node_.Library(kDebian, "libnvidia-ml.so.570.1", "libnvidia-ml.so.1");
  node_.File("/usr/lib/x86_64-linux-gnu/nvoptix.so.570.1");
  node_.File("/usr/lib/x86_64-linux-gnu/libother.so.1");
  auto found = Discover("570.1");
  ASSERT_THAT(found, IsOk());
  EXPECT_THAT(found->folders, ElementsAre(kDebian));
  EXPECT_THAT(found->files, ElementsAre("/usr/lib/x86_64-linux-gnu/libcuda.so.570.1",
                                        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.570.1",
                                        "/usr/lib/x86_64-linux-gnu/nvoptix.so.570.1"));
}

TEST_F(LibrariesTest, AMergedUsrCountsOnce) {
  node_.Library(kDebian, "libcuda.so.570.1", "libcuda.so.1");
  node_.Link("/lib", "usr/lib");
  EXPECT_THAT(Discover("570.1")->folders, ElementsAre(kDebian));
}

TEST_F(LibrariesTest, VdpauAndLegacyNvvmBelongToIt) {
  node_.Library("/usr/lib64", "libcuda.so.570.1", "libcuda.so.1");
  node_.Library("/usr/lib64/vdpau", "libvdpau_nvidia.so.570.1", "libvdpau_nvidia.so.1");
  node_.File("/usr/lib64/libnvidia-nvvm70.so.4");
  EXPECT_THAT(Discover("570.1")->files, ElementsAre("/usr/lib64/libcuda.so.570.1",
                                                    "/usr/lib64/vdpau/libvdpau_nvidia.so.570.1",
                                                    "/usr/lib64/libnvidia-nvvm70.so.4"));
}

TEST_F(LibrariesTest, WithoutAVersionTheNameOfLibcudaTellsIt) {
  node_.Library("/usr/lib64", "libcuda.so.570.1", "libcuda.so.1");
  EXPECT_EQ(Discover("")->version, "570.1");
}

TEST_F(LibrariesTest, LibrariesOfAnotherVersionAreNoDriver) {
  node_.Library("/usr/lib64", "libcuda.so.550.1", "libcuda.so.1");
  EXPECT_THAT(Discover("570.1"), IsErrorThat(Code::kNotFound, HasSubstr("libcuda.so.570.1")));
}

TEST_F(LibrariesTest, AVersionThatIsAPatternIsRefused) {
  node_.Library("/usr/lib64", "libcuda.so.570.1", "libcuda.so.1");
  EXPECT_THAT(Discover("*.*"), IsErrorThat(Code::kInvalidArgument, HasSubstr("*.*")));
  EXPECT_THAT(Discover("../x"), IsError(Code::kInvalidArgument));
}

TEST_F(LibrariesTest, FoldersOfTheLoadersCacheAreTheLastResort) {
  node_.Library("/opt/nvidia/lib", "libcuda.so.570.1", "libcuda.so.1");
  node_.Link("/opt/nvidia/lib/libcuda.so", "libcuda.so.1");
  node_.File("/etc/ld.so.cache", LdCacheFile({{"libcuda.so", "/opt/nvidia/lib/libcuda.so"}}));
  EXPECT_THAT(Discover("570.1")->files, ElementsAre("/opt/nvidia/lib/libcuda.so.570.1"));
}

TEST_F(LibrariesTest, ABrokenCacheIsAsGoodAsNone) {
  node_.File("/etc/ld.so.cache", "glibc-ld.so.cache1.1");
  EXPECT_THAT(Discover("570.1"), IsError(Code::kNotFound));
  EXPECT_THAT(discovery_->TakeWarnings(), ElementsAre(HasSubstr("ld.so.cache")));
}

// Each name a path of its own into one long string: 30,000 of them must not cost minutes.
TEST_F(LibrariesTest, ACacheOfEndlessNamesEnds) {
  std::string path;
  for (int i = 0; i < 1900; ++i) path += "/a";
  path += "/libcuda.so.570.1";
  std::vector<LdCacheLine> lines;
  for (int i = 0; i < 30'000; ++i)
    lines.push_back({"libcuda.so.1", std::string_view(path).substr(std::size_t(i % 1900) * 2)});
  std::string cache = LdCacheFile(lines);
  cache.resize(std::min<std::size_t>(cache.size(), 4 << 20));
  node_.File("/etc/ld.so.cache", cache);
  EXPECT_THAT(Discover("570.1"), IsError(Code::kNotFound));
}

TEST_F(LibrariesTest, NoDriverNamesTheRootAndTheOptionThatPlacesIt) {
  EXPECT_THAT(
      Discover("570.1"),
      IsErrorThat(Code::kNotFound,
                  AllOf(HasSubstr("libcuda.so.570.1"), HasSubstr(node_.fs().root().string()),
                        HasSubstr("--driver-root-ctr-path"), Not(HasSubstr("does not exist")))));
  std::filesystem::remove_all(node_.fs().root());
  EXPECT_THAT(Discover("570.1"), IsErrorThat(Code::kNotFound, HasSubstr("does not exist")));
}

TEST_F(LibrariesTest, WarningsOfARootFullOfRubbishAreCounted) {
  node_.Library("/usr/lib64", "libcuda.so.570.1", "libcuda.so.1");
  for (int i = 0; i < 100; ++i) node_.File(fmt::format("/usr/lib64/libx{}.so.570.1", i), "text");
  EXPECT_THAT(Links(), Contains("libcuda.so.570.1::/usr/lib64/libcuda.so.1"));
  const auto warnings = discovery_->TakeWarnings();
  EXPECT_EQ(warnings.size(), 65U);
  EXPECT_THAT(warnings.back(), HasSubstr("36 more"));
}

TEST_F(LibrariesTest, ExplicitLibrariesNeedTheFeature) {
  node_.Library("/usr/lib64", "libcuda.so.570.1", "libcuda.so.1");
  node_.File("/usr/lib64/libGL.so.1.7.0");
  node_.Link("/usr/lib64/libGL.so", "libGL.so.1.7.0");
  EXPECT_THAT(Discover("570.1")->files, Not(Contains("/usr/lib64/libGL.so.1.7.0")));
  options_.features = {config::CdiFeature::kEnableExplicitDriverLibraries};
  EXPECT_THAT(Discover("570.1")->files, Contains("/usr/lib64/libGL.so.1.7.0"));
}

TEST_F(LibrariesTest, LinksAreThoseThatTheHostHas) {
  node_.Library("/usr/lib64", "libcuda.so.570.1", "libcuda.so.1");
  node_.Library("/usr/lib64", "libnvidia-ml.so.570.1", "libnvidia-ml.so.1");
  node_.Link("/usr/lib64/libnvidia-ml.so", "libnvidia-ml.so.1");
  node_.File("/usr/lib64/libnvidia-x.so.570.1", ElfFile("libnvidia-x.so.1"));
  EXPECT_THAT(Links(), ElementsAre("libcuda.so.1::/usr/lib64/libcuda.so",
                                   "libcuda.so.570.1::/usr/lib64/libcuda.so.1",
                                   "libnvidia-ml.so.570.1::/usr/lib64/libnvidia-ml.so.1",
                                   "libnvidia-ml.so.1::/usr/lib64/libnvidia-ml.so"));
}

TEST_F(LibrariesTest, AFileThatIsNoLibraryCostsItsLinksAlone) {
  node_.Library("/usr/lib64", "libcuda.so.570.1", "libcuda.so.1");
  node_.File("/usr/lib64/libnvidia-ml.so.570.1", "text");
  EXPECT_THAT(Links(), Contains("libcuda.so.570.1::/usr/lib64/libcuda.so.1"));
  EXPECT_THAT(discovery_->TakeWarnings(), ElementsAre(HasSubstr("libnvidia-ml.so.570.1")));
}

TEST_F(LibrariesTest, ASonameCannotPlaceALinkElsewhere) {
  node_.Library("/usr/lib64", "libcuda.so.570.1", "libcuda.so.1");
  node_.File("/usr/lib64/libevil.so.570.1", ElfFile("../../etc/ld.so.preload"));
  node_.Link("/etc/ld.so.preload", "x");
  EXPECT_THAT(Links(), Not(Contains(HasSubstr("preload"))));
  EXPECT_THAT(discovery_->TakeWarnings(), ElementsAre(HasSubstr("libevil")));
}

TEST(LdcacheFoldersTest, AreTheFoldersOfLibraries) {
  EXPECT_THAT(LdcacheFolders({"/a/libx.so.1", "/a/liby.so", "/b/lib.so", "/c/x.so",
                              "/d/libz.so.1.2", "/e/libz.sox"}),
              ElementsAre("/a", "/d"));
}

}  // namespace
}  // namespace ndp::cdi
