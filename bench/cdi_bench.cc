// CDI specifications: from an inventory to the file in its place.
//
// To hold: 8 GPUs × 7 MIG devices with 60 driver libraries ≤ 30 ms, everything read anew. The
// library folder also holds what a full Debian has there.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

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

void BM_SnapshotToFile(benchmark::State& state) {
  CdiNode node;
  FillNode(node);
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
