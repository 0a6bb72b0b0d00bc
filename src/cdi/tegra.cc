#include "cdi/tegra.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cdi/control_nodes.h"
#include "cdi/hooks.h"
#include "cdi/libraries.h"
#include "cdi/paths.h"
#include "cdi/tegra_csv.h"

namespace ndp::cdi {
namespace {

constexpr std::string_view kCsvFolder = "/etc/nvidia-container-runtime/host-files-for-container.d";
constexpr std::string_view kOrinCompat = "/usr/local/cuda/compat_orin";

bool IsGpuNode(std::string_view path) {
  constexpr std::string_view kPrefix = "/dev/nvidia";
  return path.starts_with(kPrefix) && ParseUnsigned(path.substr(kPrefix.size())).has_value();
}

// Under the driver root, else on the host.
Result<CsvEntries> ReadCsv(Discovery& discovery) {
  DriverRoot host(discovery.host());
  const DriverRoot& root = discovery.driver().IsDirectory(kCsvFolder) ? discovery.driver() : host;
  CsvEntries entries;
  bool any = false;
  for (std::string_view name : {"devices.csv", "drivers.csv", "l4t.csv"}) {
    std::string path = JoinPath(kCsvFolder, name);
    auto text = root.Read(path);
    if (!text.ok()) {
      if (text.error().code() != Code::kNotFound) discovery.Warn(text.error().message());
      continue;
    }
    any = true;
    std::vector<int> bad = ParseCsv(*text, entries);
    if (!bad.empty()) {
      discovery.Warn(
          fmt::format("{}: {} lines are not of the form \"type, path\" with type dev, "
                      "dir, lib or sym, the first is line {}",
                      path, bad.size(), bad.front()));
    }
  }
  if (!any) {
    return Error(Code::kNotFound,
                 fmt::format("no CSV file in {}: NVIDIA's container runtime for Tegra (package "
                             "nvidia-container-csv) is not installed",
                             kCsvFolder));
  }
  return entries;
}

bool HasWildcard(std::string_view text) { return text.find('*') != std::string_view::npos; }

// Devices that the patterns name, by path or by name in /dev; `*` may stand in any part.
std::vector<std::string> FindDevices(const Discovery& discovery,
                                     const std::vector<std::string>& patterns) {
  const DriverRoot devices(discovery.devices());
  std::vector<std::string> found;
  const auto find = [&](const std::string& pattern) {
    const std::string_view parent = ParentPath(pattern);
    std::vector<std::string> folders = {std::string(parent)};
    if (HasWildcard(parent)) folders = devices.GlobFolders(parent);
    for (const std::string& folder : folders) {
      const std::string path = JoinPath(folder, BaseName(pattern));
      if (!HasWildcard(BaseName(path))) {
        AppendOnce(found, path);
        continue;
      }
      for (std::string& hit : GlobDevices(discovery, folder, BaseName(path))) {
        AppendOnce(found, std::move(hit));
      }
    }
  };
  for (const std::string& pattern : patterns) {
    find(pattern);
    find("/dev" + pattern);
  }
  return found;
}

// Files that the patterns name, and links to files.
std::vector<std::string> Matches(const DriverRoot& root, const std::vector<std::string>& patterns) {
  std::vector<std::string> found;
  for (const std::string& pattern : patterns) {
    for (const std::string& folder : root.GlobFolders(ParentPath(pattern))) {
      for (std::string& path : root.Glob(folder, BaseName(pattern)))
        found.push_back(std::move(path));
    }
  }
  return found;
}

// Real files, each once.
std::vector<std::string> FindFiles(const DriverRoot& root,
                                   const std::vector<std::string>& patterns) {
  std::vector<std::string> found;
  for (const std::string& hit : Matches(root, patterns)) {
    auto real = root.Resolve(hit);
    if (real && IsPrintablePath(*real)) AppendOnce(found, *std::move(real));
  }
  return found;
}

// Each link on the way from a listed path to its file, as the host has it.
std::vector<std::string> LinkArgs(const DriverRoot& root,
                                  const std::vector<std::string>& patterns) {
  std::vector<std::string> args;
  // A broken link helps nobody.
  for (const std::string& path : Matches(root, patterns)) {
    for (const std::string& step : root.LinkChain(path)) {
      auto target = root.ReadLink(step);
      if (!target || !IsPrintablePath(*target)) continue;
      AppendOnce(args, SymlinkArg(*target, step));
    }
  }
  return args;
}

void AddCudaCompat(const Options& options, const inventory::Inventory& inventory, Edits& edits) {
  int version = inventory.driver.cuda_version;
  if (version == 0) return;  // no NVML
  std::vector<std::string> args = {
      fmt::format("--host-cuda-version={}.{}", version / 1000, version % 1000 / 10)};
  bool orin = std::ranges::any_of(inventory.gpus, [](const inventory::Gpu& gpu) {
    return gpu.name().find("Orin (nvgpu)") != std::string::npos;
  });
  if (orin) args.push_back(fmt::format("--cuda-compat-container-root={}", kOrinCompat));
  AddHook(options, kEnableCudaCompat, std::move(args), edits);
}

Edits CommonEdits(Discovery& discovery, const inventory::Inventory& inventory,
                  const CsvEntries& entries) {
  const Options& options = discovery.options();
  const DriverRoot& root = discovery.driver();
  Edits edits;
  std::vector<std::string> mounted;
  for (const std::string& pattern : entries.folders) {
    for (std::string& folder : root.GlobFolders(pattern)) AppendOnce(mounted, std::move(folder));
  }
  std::vector<std::string> libraries = FindFiles(root, entries.libraries);
  AddSymlinkHook(options, LibraryLinks(discovery, libraries), edits);
  std::vector<std::string> linked = FindFiles(root, entries.links);
  AddSymlinkHook(options, LinkArgs(root, entries.links), edits);
  mounted.insert(mounted.end(), libraries.begin(), libraries.end());
  mounted.insert(mounted.end(), linked.begin(), linked.end());
  for (const std::string& path : mounted) AddMount(discovery, path, edits);
  if (root.IsFile("/etc/nv_tegra_release")) AddMount(discovery, "/etc/nv_tegra_release", edits);
  AddCudaCompat(options, inventory, edits);
  AddLdcacheHook(options, LdcacheFolders(mounted), edits);
  return edits;
}

// The integrated GPU. With a second one beside it, that one's node goes and the display's comes.
Device IntegratedGpu(const Discovery& discovery, std::vector<std::string> nodes, std::string name,
                     bool with_discrete) {
  if (with_discrete) {
    std::erase(nodes, "/dev/nvidia1");
    nodes.emplace_back("/dev/nvidia2");
  }
  Device device{.name = std::move(name)};
  AddDeviceNodesIfThere(discovery, nodes, device.edits);
  return device;
}

Result<Device> DiscreteGpu(Discovery& discovery, const inventory::Gpu& gpu,
                           std::vector<std::string> nodes) {
  NDP_TRY(Device device, MakeGpuDevice(discovery, gpu));
  AddControlNodes(discovery, device.edits);
  std::erase_if(nodes, [](const std::string& path) { return IsGpuNode(path); });
  std::erase_if(nodes, IsControlNode);
  AddDeviceNodesIfThere(discovery, nodes, device.edits);
  return device;
}

void TakeOrReport(GpuDevices& out, const std::string& id, Result<Device> device) {
  if (device.ok() && device->edits.empty()) {
    out.troubles[id] = "none of the device nodes that the CSV files list is there";
  } else if (device.ok()) {
    out.devices.push_back(std::move(*device));
  } else {
    out.troubles[id] = device.error().message();
  }
}

}  // namespace

Result<TegraSpec> DiscoverTegra(Discovery& discovery, const inventory::Inventory& inventory) {
  NDP_TRY(CsvEntries entries, ReadCsv(discovery));
  const Options& options = discovery.options();
  std::vector<std::string> nodes = FindDevices(discovery, entries.devices);
  TegraSpec spec;
  bool several =
      inventory.gpus.size() > 1 && !options.has(config::CdiFeature::kDisableMultipleCsvDevices);
  const bool named = !inventory.gpus.empty() && !options.tegra_by_id;
  const std::string id = named ? inventory.gpus.front().uuid() : std::string(kTegraId);
  const std::string name =
      named ? DeviceName(options.naming, inventory.gpus.front()) : TegraName(options.naming);
  TakeOrReport(spec.gpus, id, IntegratedGpu(discovery, nodes, name, several));
  for (const inventory::Gpu& gpu : inventory.gpus) {
    if (several && gpu.index() != 0) {
      TakeOrReport(spec.gpus, gpu.uuid(), DiscreteGpu(discovery, gpu, nodes));
    }
  }
  spec.common = CommonEdits(discovery, inventory, entries);
  return spec;
}

}  // namespace ndp::cdi
