#include "cdi/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

// Group ids that a process needs to open the node, where not everybody may read and write it.
void AddGroup(const Options& options, const DeviceNode& node, Edits& edits) {
  if (options.has(config::CdiFeature::kNoAdditionalGidsForDeviceNodes)) return;
  constexpr std::uint32_t kWorldReadWrite = 06;
  bool for_everybody = (node.file_mode.value_or(0) & kWorldReadWrite) == kWorldReadWrite;
  if (node.gid && node.file_mode && !for_everybody) edits.additional_gids.push_back(*node.gid);
}

constexpr std::size_t kMostWarnings = 64;

// Where the host's root is the driver's, every link means the same to all.
std::string HostPath(const Discovery& discovery, std::string_view path) {
  const std::string& root = discovery.options().driver_root;
  if (CleanPath(root) == "/") return CleanPath(path);
  return JoinPath(root, discovery.driver().Followable(path));
}

template <typename T>
std::optional<T> IfNotZero(T value) {
  return value == 0 ? std::nullopt : std::optional(value);
}

}  // namespace

std::vector<std::string> Discovery::TakeWarnings() {
  std::vector<std::string> all = std::exchange(warnings_, {});
  all.insert(all.end(), driver_.notes().begin(), driver_.notes().end());
  std::vector<std::string> kept;
  std::set<std::string_view> seen;
  std::size_t more = 0;
  for (const std::string& warning : all) {
    if (!seen.insert(warning).second) continue;
    if (kept.size() < kMostWarnings) {
      kept.push_back(warning);
    } else {
      ++more;
    }
  }
  if (more > 0) kept.push_back(fmt::format("and {} more warnings of the driver's files", more));
  return kept;
}

void AddMount(const Discovery& discovery, std::string_view path, Edits& edits,
              std::string_view container_path) {
  edits.mounts.push_back(
      {.host_path = HostPath(discovery, path),
       .container_path = std::string(container_path.empty() ? path : container_path),
       .options = {"ro", "nosuid", "nodev", "rbind", "rprivate"}});
}

void AddSocketMount(const Discovery& discovery, std::string_view path, Edits& edits) {
  edits.mounts.push_back({.host_path = HostPath(discovery, path),
                          .container_path = std::string(path),
                          .options = {"nosuid", "nodev", "rbind", "rprivate", "noexec"}});
}

Status AddDeviceNode(const Discovery& discovery, const std::string& path, Edits& edits) {
  NDP_TRY(os::DeviceNode found, discovery.devices().Device(path));
  const Options& options = discovery.options();
  DeviceNode node{.path = path,
                  .host_path = JoinPath(options.dev_root, path),
                  .major = found.major,
                  .minor = found.minor,
                  .file_mode = IfNotZero<std::uint32_t>(found.mode),
                  .permissions = "rwm",
                  .gid = IfNotZero<std::uint32_t>(found.gid)};
  // Absent and equal mean the same to a runtime, and absent is understood by more of them.
  if (node.host_path == node.path && !options.explicit_host_paths) node.host_path.clear();
  AddGroup(options, node, edits);
  edits.device_nodes.push_back(std::move(node));
  return {};
}

void AddDeviceNodesIfThere(const Discovery& discovery, const std::vector<std::string>& paths,
                           Edits& edits) {
  for (const std::string& path : paths) {
    Status ignored = AddDeviceNode(discovery, path, edits);
    static_cast<void>(ignored.ok());
  }
}

std::vector<std::string> GlobDevices(const Discovery& discovery, std::string_view folder,
                                     std::string_view pattern) {
  std::vector<std::string> found;
  for (const std::string& name : discovery.devices().Devices(folder)) {
    if (WildcardMatch(pattern, name) && IsPrintablePath(name)) {
      found.push_back(JoinPath(folder, name));
    }
  }
  return found;
}

}  // namespace ndp::cdi
