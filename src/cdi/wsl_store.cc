#include "cdi/wsl_store.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "cdi/paths.h"
#include "os/dynamic_library.h"

namespace ndp::cdi {
namespace {

// The few calls and structures of d3dkmthk.h (Microsoft's documentation of D3DKMT) that are needed,
// in the layout of libdxcore for Linux, where a wide character has four bytes.
struct Adapter {
  std::uint32_t handle;
  std::uint32_t luid_low;
  std::int32_t luid_high;
  std::uint32_t sources;
  std::uint32_t present_move_regions_preferred;
};

struct EnumAdapters2 {
  std::uint32_t count;
  Adapter* adapters;
};

struct EnumAdapters3 {
  std::uint64_t filter;
  std::uint32_t count;
  Adapter* adapters;
};
constexpr std::uint64_t kIncludeComputeOnly = 1;

struct QueryAdapterInfo {
  std::uint32_t adapter;
  std::uint32_t type;
  void* data;
  std::uint32_t size;
};
constexpr std::uint32_t kTypeWddmVersion = 13;
constexpr std::uint32_t kTypeQueryRegistry = 48;
constexpr std::uint32_t kMinWddmVersion = 2700;

constexpr std::size_t kMaxPath = 260;
constexpr std::uint32_t kQueryDriverStorePath = 2;
struct QueryRegistry {
  std::uint32_t query;
  std::uint32_t flags;
  std::array<char32_t, kMaxPath> value_name;
  std::uint32_t value_type;
  std::uint32_t physical_adapter;
  std::uint32_t output_size;
  std::uint32_t status;
  std::array<char32_t, kMaxPath + 2> output;
};
static_assert(offsetof(QueryRegistry, output) % 8 == 0, "a union with a 64-bit number in C");

using Enum2 = int(EnumAdapters2*);
using Enum3 = int(EnumAdapters3*);
using Query = int(QueryAdapterInfo*);

constexpr std::uint32_t kMaxAdapters = 64;

template <typename Params, typename Function>
std::optional<std::vector<Adapter>> EnumerateBy(Function* function, Params params) {
  if (function == nullptr || function(&params) != 0) return std::nullopt;
  std::vector<Adapter> adapters(std::min(params.count, kMaxAdapters));
  params.count = static_cast<std::uint32_t>(adapters.size());
  params.adapters = adapters.data();
  if (function(&params) != 0) return std::nullopt;
  adapters.resize(std::min<std::size_t>(params.count, adapters.size()));
  return adapters;
}

int Ask(Query* query, std::uint32_t adapter, std::uint32_t type, void* data, std::size_t size) {
  QueryAdapterInfo info{
      .adapter = adapter, .type = type, .data = data, .size = static_cast<std::uint32_t>(size)};
  return query(&info);
}

std::optional<std::string> StoreOf(Query* query, std::uint32_t adapter) {
  std::uint32_t version = 0;
  if (Ask(query, adapter, kTypeWddmVersion, &version, sizeof(version)) != 0) return std::nullopt;
  if (version < kMinWddmVersion) return std::nullopt;
  QueryRegistry registry{};
  registry.query = kQueryDriverStorePath;
  // First for the size of the answer, then for the answer.
  constexpr std::size_t kHead = offsetof(QueryRegistry, output) + sizeof(std::uint64_t);
  if (Ask(query, adapter, kTypeQueryRegistry, &registry, kHead) != 0) return std::nullopt;
  std::uint32_t size = registry.output_size;
  if (size > kMaxPath * sizeof(char32_t)) return std::nullopt;
  registry = {};
  registry.query = kQueryDriverStorePath;
  registry.output_size = size;
  if (Ask(query, adapter, kTypeQueryRegistry, &registry, kHead + size) != 0) return std::nullopt;
  std::string path;
  for (std::size_t i = 0; i < size / sizeof(char32_t) && registry.output[i] != 0; ++i) {
    if (registry.output[i] > 0x7e) return std::nullopt;  // Windows names its stores in ASCII
    path += static_cast<char>(registry.output[i]);
  }
  if (path.empty() || !IsPrintablePath(path)) return std::nullopt;
  return CleanPath(path);
}

std::vector<std::string> AskDxcore(const DriverRoot& root) {
  std::vector<std::string> stores;
  constexpr std::string_view kLibrary = "/usr/lib/wsl/lib/libdxcore.so";
  auto real = root.Resolve(kLibrary);
  auto library = real ? os::DynamicLibrary::Open(root.fs().Path(*real))
                      : os::DynamicLibrary::Open("libdxcore.so");
  if (!library.ok()) return stores;
  auto* query = library->Symbol<Query>("D3DKMTQueryAdapterInfo");
  if (query == nullptr) return stores;
  auto adapters =
      EnumerateBy(library->Symbol<Enum3>("D3DKMTEnumAdapters3"),
                  EnumAdapters3{.filter = kIncludeComputeOnly, .count = 0, .adapters = nullptr});
  if (!adapters) {
    adapters = EnumerateBy(library->Symbol<Enum2>("D3DKMTEnumAdapters2"),
                           EnumAdapters2{.count = 0, .adapters = nullptr});
  }
  for (const Adapter& adapter : adapters.value_or(std::vector<Adapter>())) {
    if (auto store = StoreOf(query, adapter.handle)) stores.push_back(std::move(*store));
  }
  return stores;
}

}  // namespace

std::vector<std::string> FindDriverStores(const DriverRoot& root) {
  std::vector<std::string> stores = AskDxcore(root);
  if (!stores.empty()) return stores;
  constexpr std::string_view kDrivers = "/usr/lib/wsl/drivers";
  for (const std::string& name : root.fs().List(kDrivers).value_or({})) {
    std::string path = JoinPath(kDrivers, name);
    if (IsPrintablePath(name) && root.IsDirectory(path)) stores.push_back(std::move(path));
  }
  return stores;
}

}  // namespace ndp::cdi
