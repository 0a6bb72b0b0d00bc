// The driver's files under a root folder, seen as a process with that root would see them: no
// symlink leads out of it, also not an absolute one. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/host_fs.h"

namespace ndp::cdi {

class DriverRoot {
 public:
  // `fs` must outlive it. Folders are looked at once and remembered: use it for one pass, then drop
  // it.
  explicit DriverRoot(const os::HostFs& fs);

  const os::HostFs& fs() const { return fs_; }

  // The real path, still relative to the root; nullopt where there is nothing, or a loop.
  std::optional<std::string> Resolve(std::string_view path) const;
  // `path`, or its real path where a link on the way is absolute or climbs out of the root: who
  // follows that one from outside, as a runtime does, would end up elsewhere.
  std::string Followable(std::string_view path) const;
  // What a symlink says, where `path` is one; its parents may be links.
  std::optional<std::string> ReadLink(std::string_view path) const;
  // `path` and what it links to, one link after another.
  std::vector<std::string> LinkChain(std::string_view path) const;

  // Links followed. A socket is a file here.
  bool IsFile(std::string_view path) const;
  bool IsDirectory(std::string_view path) const;
  bool IsExecutable(std::string_view path) const;

  // `folder`/<name> for each file whose name matches (`*` alone is special), links to files too,
  // sorted by name. Names that no specification can hold are left out. Not resolved. At most 1024,
  // with a note: no driver has so many, and more would cost minutes here and in every container.
  // Nor are more than 20000 names looked at in the life of this object.
  std::vector<std::string> Glob(std::string_view folder, std::string_view pattern) const;

  // The same for folders, of a whole path: `*` may stand in any part of it.
  std::vector<std::string> GlobFolders(std::string_view pattern) const;

  // Regular files alone: opening a device node can do things.
  Result<std::string> Read(std::string_view path) const;
  // The SONAME of a library: nullopt where it has none.
  Result<std::optional<std::string>> Soname(std::string_view path) const;

  // What was left out, for people.
  const std::vector<std::string>& notes() const { return notes_; }
  void Note(std::string text) const { notes_.push_back(std::move(text)); }

 private:
  enum class Kind { kNone, kFile, kExecutable, kDirectory };
  Kind KindOf(std::string_view path) const;
  // The file of this process for a clean path of the root.
  std::string FileOf(std::string_view clean) const;
  Result<std::string> ResolveRegular(std::string_view path) const;
  std::optional<std::string> ResolveFolder(std::string_view folder) const;
  std::vector<std::string> GlobKind(std::string_view folder, std::string_view pattern,
                                    bool folders) const;
  const std::vector<std::string>& List(const std::string& real_folder) const;
  // `leaves`: set where a link does that when it is followed from outside the root.
  std::optional<std::string> Walk(std::string_view path, int& links_left,
                                  bool* leaves = nullptr) const;

  const os::HostFs& fs_;
  std::string prefix_;  // of every file: the root without a slash at its end
  mutable std::map<std::string, std::optional<std::string>, std::less<>> folders_;
  mutable std::map<std::string, std::vector<std::string>> listings_;  // by real path
  mutable std::vector<std::string> notes_;
  mutable std::size_t examined_ = 0;  // names that matched a pattern
};

}  // namespace ndp::cdi
