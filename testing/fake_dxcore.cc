// A libdxcore.so as Windows would give it: three adapters, of which one is too old and one is
// NVIDIA's. Written from Microsoft's documentation of D3DKMT, not from the code it tests.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cwchar>

namespace {

struct Adapter {
  unsigned handle;
  struct {
    unsigned low;
    int high;
  } luid;
  unsigned sources;
  unsigned present_regions;
};

struct Registry {
  int query_type;
  unsigned flags;
  wchar_t value_name[260];
  unsigned value_type;
  unsigned adapter_index;
  unsigned output_size;
  int status;
  union {
    unsigned long long number;
    wchar_t text[1];
  } output;
};

constexpr unsigned kOld = 7;
constexpr unsigned kIntel = 8;
constexpr unsigned kNvidia = 9;

const wchar_t* StoreOf(unsigned adapter) {
  return adapter == kIntel ? L"/usr/lib/wsl/drivers/iigd_dch.inf_amd64_1"
                           : L"/usr/lib/wsl/drivers/nv_dispi.inf_amd64_2";
}

}  // namespace

extern "C" {

int D3DKMTEnumAdapters3(void* params) {
  struct Params {
    unsigned long long filter;
    unsigned count;
    Adapter* adapters;
  };
  auto* enumeration = static_cast<Params*>(params);
  if (enumeration->filter != 1) return -1;
  if (enumeration->adapters != nullptr) {
    if (enumeration->count < 3) return -1;
    const unsigned handles[] = {kOld, kIntel, kNvidia};
    for (int i = 0; i < 3; ++i) enumeration->adapters[i] = {handles[i], {1, 2}, 0, 0};
  }
  enumeration->count = 3;
  return 0;
}

int D3DKMTQueryAdapterInfo(void* params) {
  struct Params {
    unsigned adapter;
    int type;
    void* data;
    unsigned size;
  };
  auto* query = static_cast<Params*>(params);
  if (query->type == 13) {  // the WDDM version
    const unsigned version = query->adapter == kOld ? 2600 : 3000;
    if (query->size != sizeof(version)) return -1;
    std::memcpy(query->data, &version, sizeof(version));
    return 0;
  }
  if (query->type != 48 || query->size < sizeof(Registry)) return -1;
  auto* registry = static_cast<Registry*>(query->data);
  if (registry->query_type != 2) return -1;
  const wchar_t* store = StoreOf(query->adapter);
  const unsigned size = static_cast<unsigned>(std::wcslen(store) * sizeof(wchar_t));
  if (registry->output_size == 0) {
    registry->status = 1;  // too small: says how much it would be
    registry->output_size = size;
    return 0;
  }
  if (registry->output_size < size || query->size < sizeof(Registry) + size) return -1;
  std::memcpy(registry->output.text, store, size);
  registry->output_size = size;
  return 0;
}

}  // extern "C"
