#include "cdi/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cdi/text.h"
#include "cdi/validate.h"
#include "os/host_fs.h"

namespace ndp::cdi {
namespace {

namespace stdfs = std::filesystem;

Result<Spec> ReadSpec(const os::HostFs& folder, const std::string& name) {
  NDP_TRY(std::string text, folder.Read(name));
  NDP_TRY(Spec spec, ParseSpec(text));
  NDP_TRY(Validate(spec));
  return spec;
}

void ReadFolder(const stdfs::path& path, Registry& registry) {
  os::HostFs folder(path);
  std::map<std::string, stdfs::path> here;
  std::set<std::string> refused;
  for (const std::string& name : folder.List("/").value_or({})) {
    if (!name.ends_with(".json") && !name.ends_with(".yaml")) continue;
    const stdfs::path file = path / name;
    auto spec = ReadSpec(folder, name);
    if (!spec.ok()) {
      registry.problems.push_back(fmt::format("{}: {}", file.string(), spec.error().message()));
      continue;
    }
    for (const Device& device : spec->devices) {
      std::string qualified = fmt::format("{}={}", spec->kind, device.name);
      auto [known, first] = here.emplace(qualified, file);
      if (first || !refused.insert(qualified).second) continue;
      registry.problems.push_back(fmt::format("{} is defined by {} and by {}, so by neither",
                                              qualified, known->second.string(), file.string()));
    }
  }
  for (auto& [name, file] : here) {
    if (refused.contains(name)) {
      registry.names.erase(name);
    } else {
      registry.names[name] = file;
    }
  }
}

}  // namespace

Registry ReadRegistry(const std::vector<stdfs::path>& folders) {
  Registry registry;
  for (const stdfs::path& folder : folders) ReadFolder(folder, registry);
  return registry;
}

}  // namespace ndp::cdi
