#include "cdi/driver_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

constexpr std::array<std::string_view, 7> kPrograms = {"nvidia-smi",
                                                       "nvidia-debugdump",
                                                       "nvidia-persistenced",
                                                       "nvidia-cuda-mps-control",
                                                       "nvidia-cuda-mps-server",
                                                       "nvidia-imex",
                                                       "nvidia-imex-ctl"};

constexpr std::array<std::string_view, 6> kProgramFolders = {
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"};

// What comes first wins: $PATH, then the usual folders.
std::vector<std::string> ProgramFolders(const Options& options) {
  std::vector<std::string> folders = options.environment.path;
  for (std::string_view folder : kProgramFolders) {
    if (std::ranges::find(folders, folder) == folders.end()) folders.emplace_back(folder);
  }
  return folders;
}

// Where the kernel looks for firmware (Documentation/driver-api/firmware/fw_search_path.rst).
std::vector<std::string> FirmwareFolders(Discovery& discovery) {
  std::vector<std::string> folders;
  auto custom = discovery.host().Read("/sys/module/firmware_class/parameters/path");
  if (custom.ok()) {
    const std::string_view folder = Trim(*custom);
    if (!folder.empty() && IsPrintablePath(folder)) folders.emplace_back(folder);
  } else if (custom.error().code() != Code::kNotFound) {
    discovery.Warn(fmt::format("read the kernel's firmware path: {}", custom.error().message()));
  }
  for (std::string_view base : {"/lib/firmware/updates", "/lib/firmware"}) {
    const std::string& release = discovery.options().environment.kernel_release;
    if (!release.empty()) folders.push_back(JoinPath(base, release));
    folders.emplace_back(base);
  }
  return folders;
}

}  // namespace

void AddSockets(const Discovery& discovery, Edits& edits) {
  if (discovery.options().has(config::CdiFeature::kDisableIpcDiscoverer)) return;
  for (std::string_view socket : {"nvidia-persistenced/socket", "nvidia-fabricmanager/socket"}) {
    for (std::string_view folder : {"/run", "/var/run"}) {
      std::string path = JoinPath(folder, socket);
      if (!discovery.driver().IsFile(path)) continue;
      AddSocketMount(discovery, path, edits);
      break;
    }
  }
}

void AddFirmware(Discovery& discovery, std::string_view driver_version, Edits& edits) {
  for (const std::string& folder : FirmwareFolders(discovery)) {
    for (const std::string& file : discovery.driver().Glob(
             JoinPath(folder, fmt::format("nvidia/{}", driver_version)), "gsp*.bin")) {
      AddMount(discovery, file, edits);
    }
  }
}

void AddPrograms(const Discovery& discovery, Edits& edits) {
  std::vector<std::string> folders = ProgramFolders(discovery.options());
  for (std::string_view program : kPrograms) {
    for (const std::string& folder : folders) {
      std::string path = JoinPath(folder, program);
      if (!discovery.driver().IsExecutable(path)) continue;
      AddMount(discovery, path, edits);
      break;
    }
  }
}

}  // namespace ndp::cdi
