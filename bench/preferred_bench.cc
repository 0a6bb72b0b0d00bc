// Preferred allocation: the whole policy function, ids on the wire in, ids out.
//
// To hold: n = 8 ≤ 0.2 ms and n = 16 ≤ 20 ms at every size; n = 64 ≤ 10 ms; 8 GPUs × 7,000 replicas
// of size 8 ≤ 10 ms. Cold means that the CPU's caches were emptied before each call. Times are
// those of the calling thread on a processor: a machine that does other things meanwhile changes
// little.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "resource/partition.h"
#include "resource/preferred.h"

namespace ndp::resource {
namespace {

// More than the last level cache of the machines this runs on.
constexpr std::size_t kFlushedBytes = std::size_t{64} << 20;

struct World {
  DevicePool pool;
  PairScores scores;
  std::vector<std::string> ids;
  std::vector<std::string_view> available;  // in random order, as from the kubelet
};

std::string RandomUuid(std::mt19937& random) {
  std::string uuid = "GPU-5f3a0c1e-7b6d-4e2f-9a8b-0123456789ab";
  for (std::size_t i = 4; i < uuid.size(); ++i) {
    if (uuid[i] != '-') uuid[i] = "0123456789abcdef"[random() % 16];
  }
  return uuid;
}

World MakeWorld(int gpus, int replicas) {
  std::mt19937 random(1);
  std::uniform_int_distribution<unsigned> links(0, 4);
  World world;
  std::vector<PoolDevice> devices;
  world.scores = PairScores(gpus);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    devices.push_back({.uuid = RandomUuid(random), .gpu = gpu, .replicas = replicas});
    for (int other = 0; other < gpu; ++other) {
      world.scores.Set(gpu, other, PairScore(gpu / 4 == other / 4 ? 30 : 50, links(random)));
    }
  }
  world.pool = DevicePool(std::move(devices));
  // Written out in their random order: a message read from a socket has its texts in that order.
  std::vector<std::uint32_t> slots(world.pool.size());
  std::iota(slots.begin(), slots.end(), 0U);
  std::ranges::shuffle(slots, random);
  for (const std::uint32_t slot : slots) world.ids.push_back(world.pool.Id(slot));
  world.available.assign(world.ids.begin(), world.ids.end());
  return world;
}

void FlushCaches() {
  static std::vector<char> memory(kFlushedBytes);
  for (std::size_t i = 0; i < memory.size(); i += 64) ++memory[i];
  benchmark::ClobberMemory();
}

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Timed by hand: pausing the library's own timer costs more than most of these calls.
void Run(benchmark::State& state, const World& world, int size, SharedPolicy policy, bool cold) {
  for (auto _ : state) {
    if (cold) FlushCaches();
    const double begin = ThreadSeconds();
    auto answer =
        Prefer(world.pool, world.scores, policy, {.available = world.available, .size = size});
    benchmark::DoNotOptimize(answer);
    state.SetIterationTime(ThreadSeconds() - begin);
    if (!answer.ok()) state.SkipWithError(answer.error().message().c_str());
  }
}

// Random links: no uniform fabric, few ties.
void WholeGpus(benchmark::State& state) {
  const World world = MakeWorld(static_cast<int>(state.range(0)), 0);
  Run(state, world, static_cast<int>(state.range(1)), SharedPolicy::kDistributed,
      state.range(2) != 0);
}

void Replicas(benchmark::State& state) {
  const World world = MakeWorld(8, static_cast<int>(state.range(0)));
  Run(state, world, static_cast<int>(state.range(1)),
      state.range(2) != 0 ? SharedPolicy::kPacked : SharedPolicy::kDistributed,
      state.range(3) != 0);
}

void EverySize(benchmark::internal::Benchmark* bench) {
  for (const int gpus : {8, 16}) {
    for (int size = 1; size <= gpus; ++size) bench->Args({gpus, size, 0});
  }
  for (const int size : {1, 2, 3, 4, 5, 8, 13, 16, 24, 32, 33, 48, 63}) bench->Args({64, size, 0});
}

// A cold call comes with a walk over 64 MiB, so its count is given instead of a time to fill.
constexpr int kColdCalls = 50;

BENCHMARK(WholeGpus)
    ->ArgNames({"gpus", "size", "cold"})
    ->Apply(EverySize)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(WholeGpus)
    ->ArgNames({"gpus", "size", "cold"})
    ->Args({8, 2, 1})
    ->Args({16, 5, 1})
    ->Iterations(kColdCalls)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(Replicas)
    ->ArgNames({"replicas", "size", "packed", "cold"})
    ->ArgsProduct({{16, 1024, 7000}, {1, 8}, {0, 1}, {0}})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(Replicas)
    ->ArgNames({"replicas", "size", "packed", "cold"})
    ->ArgsProduct({{16, 1024, 7000}, {1, 8}, {0, 1}, {1}})
    ->Iterations(kColdCalls)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ndp::resource
