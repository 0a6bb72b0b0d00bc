// CDI specifications: from an inventory to the file in its place.
//
// To hold: 8 GPUs × 7 MIG devices with 60 driver libraries ≤ 30 ms, everything read anew. The
// library folder also holds what a full Debian has there.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cdi/build.h"
#include "cdi/spec_dir.h"
#include "testing/cdi_nodes.h"
#include "testing/ld_cache_file.h"

namespace ndp::cdi {
namespace {

constexpr int kGpus = 8;
constexpr int kMigPerGpu = 7;
constexpr int kLibraries = 60;
constexpr int kOtherLibraries = 2000;

void FillNode(CdiNode& node) {
  FillEightH100(node);
  const std::string folder = "/usr/lib/x86_64-linux-gnu";
  for (int i = 9; i < kLibraries; ++i) {
    node.files.Library(folder, fmt::format("libnvidia-part{}.so.550.54.15", i),
                       fmt::format("libnvidia-part{}.so.1", i));
  }
  std::vector<std::string> names;
  for (int i = 0; i < kOtherLibraries; ++i) names.push_back(fmt::format("libother{}.so.1", i));
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    node.files.Library(folder, name + ".2", name);
    paths.push_back(folder + "/" + name);
  }
  std::vector<LdCacheLine> cache;
  for (std::size_t i = 0; i < names.size(); ++i) cache.push_back({names[i], paths[i]});
  node.files.File("/etc/ld.so.cache", LdCacheFile(cache));
  unsigned cap = 3;
  for (inventory::Gpu& gpu : node.inventory.gpus) {
    for (unsigned slot = 0; slot < kMigPerGpu; ++slot, cap += 2) {
      AddMig(gpu, slot, fmt::format("MIG-{}-{}", gpu.index(), slot), cap, cap + 1);
      node.files.Device(fmt::format("/dev/nvidia-caps/nvidia-cap{}", cap), 236, cap, 0444);
      node.files.Device(fmt::format("/dev/nvidia-caps/nvidia-cap{}", cap + 1), 236, cap + 1, 0444);
    }
  }
}

// Real device nodes where this process may make them: dev.list is read anew for each, which no
// machine does.
void MakeRealNodes(const CdiNode& node) {
  std::ifstream list(node.files.Path("/dev.list"));
  std::string path;
  std::string kind;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned mode = 0;
  unsigned gid = 0;
  while (list >> path >> kind >> major >> minor >> std::oct >> mode >> std::dec >> gid) {
    const std::filesystem::path file = node.files.Path(path);
    std::filesystem::create_directories(file.parent_path());
    if (mknod(file.c_str(), S_IFCHR | mode, makedev(major, minor)) != 0) return;
  }
  std::filesystem::remove(node.files.Path("/dev.list"));
}

void BM_SnapshotToFile(benchmark::State& state) {
  // /var/run is one too. On a disk's file system the making of files may take most of the time.
  if (std::filesystem::is_directory("/dev/shm")) setenv("TMPDIR", "/dev/shm", 0);
  CdiNode node;
  FillNode(node);
  MakeRealNodes(node);
  TempDir out;
  const SpecDir dir(out / "cdi");
  Options options;
  options.environment = {
      .path = {"/usr/bin"}, .data_dirs = {"/usr/share"}, .kernel_release = "6.1"};
  for (auto _ : state) {
    state.PauseTiming();
    std::filesystem::remove_all(out / "cdi");
    state.ResumeTiming();
    Built built = Build(options, node.inventory, node.files.fs(), node.files.fs());
    auto written = dir.Write(built.specs.at(0).spec);
    if (!written.ok() || built.specs[0].spec.devices.size() != kGpus * kMigPerGpu) {
      state.SkipWithError("no specification of all devices");
      break;
    }
  }
}
BENCHMARK(BM_SnapshotToFile)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ndp::cdi
