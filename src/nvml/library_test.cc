#include "nvml/library.h"

#include <unistd.h>

#include <fstream>

#include "nvml/dl_driver.h"
#include "testing/result_matchers.h"

namespace ndp::nvml {
namespace {
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class LibraryTest : public testing::Test {
 protected:
  LibraryTest()
      : root_(fs::path(testing::TempDir()) /
              (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "-" +
               std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "usr/lib64");
  }
  ~LibraryTest() override { fs::remove_all(root_); }
  fs::path root_;
};

TEST_F(LibraryTest, FindsTheVersionedFileBehindTheLink) {
  std::ofstream(root_ / "usr/lib64/libnvidia-ml.so.570.86.15") << "x";
  fs::create_symlink("libnvidia-ml.so.570.86.15", root_ / "usr/lib64/libnvidia-ml.so.1");
  EXPECT_THAT(FindLibrary(root_),
              IsOkAnd(fs::canonical(root_) / "usr/lib64/libnvidia-ml.so.570.86.15"));
}

TEST_F(LibraryTest, AnAbsoluteLinkIsLookedForUnderTheRootFirst) {
  fs::create_directories(root_ / "opt/nvidia");
  std::ofstream(root_ / "opt/nvidia/ml.so") << "x";
  fs::create_symlink("/opt/nvidia/ml.so", root_ / "usr/lib64/libnvidia-ml.so.1");
  EXPECT_THAT(FindLibrary(root_), IsOkAnd(fs::canonical(root_) / "opt/nvidia/ml.so"));
}

TEST_F(LibraryTest, MissingNamesEveryPathAndTheLoadersWords) {
  EXPECT_THAT(
      DlLoader(root_).Open(),
      IsErrorThat(Code::kNotFound,
                  AllOf(HasSubstr((root_ / "usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1").string()),
                        HasSubstr("cannot open shared object file"))));
}

TEST_F(LibraryTest, AFileThatIsNoLibraryIsNamed) {
  std::ofstream(root_ / "usr/lib64/libnvidia-ml.so.1") << "not an ELF file";
  EXPECT_THAT(DlLoader(root_).Open(), IsErrorThat(Code::kNotFound, HasSubstr("file too short")));
}

}  // namespace
}  // namespace ndp::nvml
