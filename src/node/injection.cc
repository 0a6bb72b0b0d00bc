#include "node/injection.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace ndp::node {
namespace {

// The type of the file system mounted at exactly that path; the last mount counts. A line reads
// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw".
std::string_view TypeAt(std::string_view mountinfo, std::string_view path) {
  std::string_view type;
  for (std::string_view line : Split(mountinfo, '\n')) {
    const std::vector<std::string_view> fields = Split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 5 || fields[4] != path || fields.end() - dash < 2) continue;
    type = *(dash + 1);
  }
  return type;
}

bool Under(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const std::filesystem::path relative =
      path.lexically_normal().lexically_relative((folder / "").lexically_normal().parent_path());
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

bool DriverIsInjected(const InjectionInputs& in) {
  // Runtimes give a container an overlay as its root.
  if (!TypeAt(in.mountinfo, "/").ends_with("overlay") &&
      !TypeAt(in.mountinfo, "/").ends_with("overlayfs")) {
    return false;
  }
  const bool host_library = in.driver_root != "/" && Under(in.library, in.driver_root);
  // The host's /dev is the kernel's devtmpfs; a container's own is a tmpfs filled once.
  const bool host_devices = in.devices_root != "/" || TypeAt(in.mountinfo, "/dev") == "devtmpfs";
  return !host_library || !host_devices;
}

}  // namespace ndp::node
