// The driver's libraries under its root: which version, in which folders, which files, and which
// links a container needs beside them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cdi/discovery.h"
#include "cdi/driver_root.h"
#include "cdi/ld_cache.h"

namespace ndp::cdi {

// Finds libraries by name pattern: in the usual folders, or else in the loader's cache. Results are
// real files, each once. One thread, one pass.
class LibraryLocator {
 public:
  explicit LibraryLocator(const DriverRoot& root) : root_(root) {}
  std::vector<std::string> Find(std::string_view pattern);

 private:
  std::vector<std::string> FindInCache(std::string_view pattern);
  const std::vector<LdCacheEntry>& Cached();

  const DriverRoot& root_;
  bool cache_read_ = false;
  std::string cache_;                 // the loader's cache
  std::vector<LdCacheEntry> cached_;  // views into it
};

struct DriverLibraries {
  std::string version;
  std::vector<std::string> folders;  // where the libraries of that version are
  std::vector<std::string> files;    // to mount, in the order found
};

// `version` as the driver reports it; empty: taken from the name of libcuda or libnvidia-ml.
// kNotFound where no driver library of the version is under the root.
Result<DriverLibraries> DiscoverLibraries(const Discovery& discovery, LibraryLocator& locator,
                                          std::string_view version);

// Links for create-symlinks that programs expect beside `files`, each once.
std::vector<std::string> LibraryLinks(Discovery& discovery, const std::vector<std::string>& files);

// The folders of those `files` that the loader's cache of a container should know.
std::vector<std::string> LdcacheFolders(const std::vector<std::string>& files);

}  // namespace ndp::cdi
