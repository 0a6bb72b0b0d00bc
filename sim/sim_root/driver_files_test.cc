#include "sim_root/driver_files.h"

#include <unistd.h>

#include "sim_root/files.h"
#include "testing/result_matchers.h"

namespace ndp::sim_root {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class DriverFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ndp-sim-driver-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = fs::path(folder) / "root";
    nvml_ = fs::path(folder) / "nvml.so";
    ASSERT_THAT(WriteFile(nvml_, std::string("\0nvmlDeviceGetName\0nvmlDeviceGetUUID\0", 37)),
                IsOk());
  }
  void TearDown() override { fs::remove_all(root_.parent_path()); }

  fs::path root_;
  fs::path nvml_;
};

TEST_F(DriverFilesTest, LinksLeadFromSonamesToVersionedFiles) {
  ASSERT_THAT(WriteDriverFiles(root_, "570.86.15", nvml_), IsOk());
  const fs::path folder = root_ / kLibraryFolder;
  EXPECT_EQ(fs::read_symlink(folder / "libcuda.so"), "libcuda.so.1");
  EXPECT_EQ(fs::read_symlink(folder / "libcuda.so.1"), "libcuda.so.570.86.15");
  EXPECT_EQ(fs::canonical(folder / "libnvidia-ml.so.1"), InstalledNvml(root_, "570.86.15"));
  EXPECT_TRUE(fs::is_regular_file(folder / "libnvidia-glcore.so.570.86.15"));
  EXPECT_TRUE(fs::is_regular_file(folder / "vdpau/libvdpau_nvidia.so.570.86.15"));
  EXPECT_TRUE(fs::is_regular_file(root_ / "lib/firmware/nvidia/570.86.15/gsp_ga10x.bin"));
  EXPECT_NE(fs::status(root_ / "usr/bin/nvidia-smi").permissions() & fs::perms::owner_exec,
            fs::perms::none);
}

TEST_F(DriverFilesTest, AnUpgradeLeavesNothingOfTheOldVersion) {
  ASSERT_THAT(WriteDriverFiles(root_, "570.86.15", nvml_), IsOk());
  ASSERT_THAT(WriteDriverFiles(root_, "575.57.08", nvml_), IsOk());
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr("570.86.15")));
  }
  EXPECT_TRUE(fs::exists(root_ / kLibraryFolder / "libnvidia-egl-gbm.so.1.1.2"));
}

TEST_F(DriverFilesTest, AMissingSymbolComesBack) {
  ASSERT_THAT(WriteDriverFiles(root_, "570.86.15", nvml_), IsOk());
  const fs::path library = InstalledNvml(root_, "570.86.15");
  ASSERT_THAT(SetSymbolMissing(library, "nvmlDeviceGetName", true), IsOk());
  EXPECT_THAT(ReadFile(library), IsOkAnd(Not(HasSubstr("nvmlDeviceGetName"))));
  EXPECT_THAT(ReadFile(library), IsOkAnd(HasSubstr("nvmlDeviceGetUUID")));
  ASSERT_THAT(SetSymbolMissing(library, "nvmlDeviceGetName", false), IsOk());
  EXPECT_EQ(*ReadFile(library), *ReadFile(nvml_));
}

}  // namespace
}  // namespace ndp::sim_root
