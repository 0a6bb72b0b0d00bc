// Whole specifications of whole machines, compared byte for byte with files in tests/golden/cdi
// (which have line breaks for people, and are compared without them). To make them anew after a
// wanted change: NDP_UPDATE_GOLDEN=1 cdi_test --gtest_filter='Golden*'.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cdi/build.h"
#include "cdi/text.h"
#include "cdi/validate.h"
#include "doc/json.h"
#include "testing/cdi_nodes.h"
#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::IsEmpty;

// What lies between texts only separates.
std::string WithoutBlanks(std::string_view json) {
  std::string out;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\') {
      out += c;
      out += json[++i];
      continue;
    }
    if (c == '"') in_text = !in_text;
    if (in_text || (c != ' ' && c != '\n')) out += c;
  }
  return out;
}

void ExpectGolden(const Built& built, std::string_view device_class, const std::string& name) {
  const Spec* spec = built.Find(device_class);
  ASSERT_NE(spec, nullptr) << built.gpu_trouble;
  EXPECT_THAT(Validate(*spec), IsOk());
  const std::filesystem::path file =
      std::filesystem::path(NDP_SOURCE_DIR) / "tests/golden/cdi" / (name + ".json");
  if (std::getenv("NDP_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << doc::ToJson(*doc::ParseJson(ToJson(*spec)), 1) << "\n";
  }
  std::ifstream in(file);
  const std::string golden{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(ToJson(*spec), WithoutBlanks(golden)) << file;
}

// An integrated GPU, and a card beside it.
void FillTegraWithACard(CdiNode& node) {
  FillTegra(node);
  node.inventory.driver = {.driver_version = "540.4.0", .cuda_version = 12060};
  node.inventory.gpus = {MakeGpu(0, "GPU-a", "", "Orin (nvgpu)"),
                         MakeGpu(1, "GPU-b", "0000:01:00.0", "NVIDIA RTX A6000")};
  AddNvidiaNodes(node.files, 3);
  node.files.File("/etc/nvidia-container-runtime/host-files-for-container.d/l4t.csv",
                  "dev, /dev/nvidia0\ndev, /dev/nvidia1\ndev, /dev/nvidiactl\n");
}

class GoldenTest : public testing::Test {
 protected:
  GoldenTest() {
    options_.environment = {.path = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"},
                            .data_dirs = {"/usr/local/share", "/usr/share"},
                            .kernel_release = "6.1.0-28-amd64"};
  }
  Built Build() const {
    return cdi::Build(options_, node_.inventory, node_.files.fs(), node_.files.fs());
  }

  CdiNode node_;
  Options options_;
};

TEST_F(GoldenTest, A100WithMigAndDrmNodes) {
  FillA100Mig(node_);
  Built built = Build();
  ExpectGolden(built, "gpu", "a100_mig");
  EXPECT_THAT(built.warnings, IsEmpty());
}

TEST_F(GoldenTest, EightH100) {
  FillEightH100(node_);
  Built built = Build();
  ExpectGolden(built, "gpu", "h100x8");
  EXPECT_EQ(built.Find("gpu")->version, "0.3.0");
}

TEST_F(GoldenTest, DriverContainer) {
  FillA100Mig(node_);
  options_.driver_root = options_.dev_root = "/run/nvidia/driver";
  options_.explicit_host_paths = true;
  ExpectGolden(Build(), "gpu", "driver_container");
}

TEST_F(GoldenTest, HostMountedAtDriverRoot) {
  FillEightH100(node_);
  options_.explicit_host_paths = true;
  Built built = Build();
  ExpectGolden(built, "gpu", "host_at_driver_root");
  EXPECT_EQ(built.Find("gpu")->version, "0.5.0");
}

TEST_F(GoldenTest, IndexNames) {
  FillA100Mig(node_);
  options_.naming = Naming::kIndex;
  ExpectGolden(Build(), "gpu", "index_names");
}

TEST_F(GoldenTest, HooksDisabled) {
  FillA100Mig(node_);
  options_.disable_all_hooks = true;
  ExpectGolden(Build(), "gpu", "hooks_disabled");
}

TEST_F(GoldenTest, FeatureFlags) {
  using config::CdiFeature;
  FillA100Mig(node_);
  node_.files.File("/usr/lib/x86_64-linux-gnu/libGL.so.1.7.0", ElfFile("libGL.so.1"));
  node_.files.Link("/usr/lib/x86_64-linux-gnu/libGL.so", "libGL.so.1.7.0");
  options_.features = {
      CdiFeature::kEnableExplicitDriverLibraries, CdiFeature::kEnableCoherentAnnotations,
      CdiFeature::kNoAdditionalGidsForDeviceNodes, CdiFeature::kDisableIpcDiscoverer};
  ExpectGolden(Build(), "gpu", "feature_flags");
}

// That library is never asked, so the flag changes nothing.
TEST_F(GoldenTest, WithoutSandboxutils) {
  FillA100Mig(node_);
  node_.files.File("/usr/lib/x86_64-linux-gnu/libnvidia-sandboxutils.so.1");
  options_.features = {config::CdiFeature::kDisableNvsandboxutils};
  ExpectGolden(Build(), "gpu", "a100_mig");
  options_.features = {};
  ExpectGolden(Build(), "gpu", "a100_mig");
}

TEST_F(GoldenTest, StorageNetworkAndImex) {
  FillEightH100(node_);
  FakeNode& files = node_.files;
  files.Device("/dev/nvidia-fs0", 499, 0);
  files.Device("/dev/nvidia-fs1", 499, 1);
  files.Folder("/run/udev");
  files.File("/etc/cufile.json");
  files.Device("/dev/infiniband/uverbs0", 231, 192);
  files.Device("/dev/infiniband/uverbs1", 231, 193);
  files.Device("/dev/infiniband/rdma_cm", 10, 58);
  files.Device("/dev/gdrdrv", 235, 0);
  files.Device("/dev/nvidia-caps-imex-channels/channel0", 237, 0);
  options_.gds = options_.mofed = options_.gdrcopy = true;
  options_.imex_channels = {0};
  Built built = Build();
  ExpectGolden(built, "gds", "gds");
  ExpectGolden(built, "mofed", "mofed");
  ExpectGolden(built, "gdrcopy", "gdrcopy");
  ExpectGolden(built, "imex-channel", "imex");
  EXPECT_THAT(built.ExtraNames(),
              testing::ElementsAre("k8s.device-plugin.nvidia.com/imex-channel=0",
                                   "k8s.device-plugin.nvidia.com/gdrcopy=all",
                                   "k8s.device-plugin.nvidia.com/gds=all",
                                   "k8s.device-plugin.nvidia.com/mofed=all"));
}

TEST_F(GoldenTest, Wsl) {
  FillWsl(node_);
  ExpectGolden(Build(), "gpu", "wsl");
}

TEST_F(GoldenTest, Tegra) {
  FillTegra(node_);
  options_.naming = Naming::kIndex;
  Built built = Build();
  ExpectGolden(built, "gpu", "tegra");
  EXPECT_THAT(built.warnings, testing::ElementsAre(testing::HasSubstr("line 5")));
}

TEST_F(GoldenTest, TegraWithADiscreteGpu) {
  FillTegraWithACard(node_);
  ExpectGolden(Build(), "gpu", "tegra_two_gpus");
}

TEST_F(GoldenTest, TegraWithADiscreteGpuAsOneDevice) {
  FillTegraWithACard(node_);
  options_.features = {config::CdiFeature::kDisableMultipleCsvDevices};
  options_.naming = Naming::kIndex;
  ExpectGolden(Build(), "gpu", "tegra_one_device");
}

}  // namespace
}  // namespace ndp::cdi
