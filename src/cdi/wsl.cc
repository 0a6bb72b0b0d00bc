#include "cdi/wsl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cdi/hooks.h"
#include "cdi/libraries.h"
#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

constexpr std::string_view kDxcore = "/usr/lib/wsl/lib/libdxcore.so";

constexpr std::array<std::string_view, 8> kStoreFiles = {"libcuda.so.1.1",
                                                         "libcuda_loader.so",
                                                         "libnvidia-ptxjitcompiler.so.1",
                                                         "libnvidia-ml.so.1",
                                                         "libnvidia-ml_loader.so",
                                                         "libnvdxgdmal.so.1",
                                                         "nvcubins.bin",
                                                         "nvidia-smi"};

}  // namespace

Result<WslSpec> DiscoverWsl(Discovery& discovery, const std::vector<std::string>& stores) {
  const DriverRoot& root = discovery.driver();
  const Options& options = discovery.options();
  auto store = std::ranges::find_if(stores, [&](const std::string& path) {
    return root.IsFile(JoinPath(path, "libcuda.so.1.1"));
  });
  if (store == stores.end()) {
    return Error(Code::kNotFound,
                 fmt::format("none of {} driver stores has libcuda.so.1.1", stores.size()));
  }
  WslSpec spec;
  spec.all.name = "all";
  NDP_TRY(AddDeviceNode(discovery, "/dev/dxg", spec.all.edits));

  std::vector<std::string> libraries;
  auto add = [&](const std::string& path, bool library) {
    if (!root.IsFile(path)) return;
    AddMount(discovery, path, spec.common);
    if (library) libraries.push_back(path);
  };
  for (std::string_view name : kStoreFiles) add(JoinPath(*store, name), true);
  add(std::string(kDxcore), true);
  for (std::string_view pattern : {"*.so*", "*.bin", "*.dll"}) {
    for (const std::string& path : root.Glob(*store, pattern)) {
      if (std::ranges::find(kStoreFiles, BaseName(path)) == kStoreFiles.end()) add(path, false);
    }
  }
  // The store is no folder that PATH has.
  if (std::string smi = JoinPath(*store, "nvidia-smi"); root.IsFile(smi)) {
    AddSymlinkHook(options, std::array{SymlinkArg(smi, "/usr/bin/nvidia-smi")}, spec.common);
  }
  AddLdcacheHook(options, LdcacheFolders(libraries), spec.common);
  return spec;
}

}  // namespace ndp::cdi
