// The host's files under a root folder: "/" in production, a simulator's folder in tests. Reads
// only; all paths are absolute and are looked for beneath the root. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ndp::os {

struct DeviceNode {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned mode = 0;  // permission bits
  unsigned gid = 0;
  bool operator==(const DeviceNode&) const = default;
};

class HostFs {
 public:
  explicit HostFs(std::filesystem::path root = "/");

  const std::filesystem::path& root() const { return root_; }
  // root + path. A path that climbs out with ".." is cut at the root.
  std::filesystem::path Path(std::string_view path) const;

  // Whole text; at most `limit` bytes (kInvalidArgument beyond, so that a hostile file costs no
  // memory).
  Result<std::string> Read(std::string_view path, std::size_t limit = 4 << 20) const;
  // Entry names, sorted bytewise.
  Result<std::vector<std::string>> List(std::string_view path) const;
  bool Exists(std::string_view path) const;
  bool IsDirectory(std::string_view path) const;

  // A character device. Under a root other than "/" a file `dev.list` in the root names nodes that
  // could not be made (lines "path c major minor mode-octal gid"): it is looked at where lstat
  // finds no device. kNotFound where there is none; kInvalidArgument for a file that is no device.
  Result<DeviceNode> Device(std::string_view path) const;
  // Names of the character devices in a folder, those of `dev.list` too, sorted bytewise.
  std::vector<std::string> Devices(std::string_view folder) const;

 private:
  std::filesystem::path root_;
};

}  // namespace ndp::os
