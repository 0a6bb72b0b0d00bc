// The folder where container runtimes look for specifications, and the files there that are ours.
// The loop's thread.
//
// Files stay when the program ends: a container that restarts is resolved by its old names without
// a new Allocate. Two instances of a rolling update write the same content and so leave each
// other's file alone.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cdi/build.h"
#include "cdi/spec.h"

namespace ndp::cdi {

class SpecDir {
 public:
  explicit SpecDir(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  // <folder>/<vendor>-<class>.json
  std::filesystem::path FileOf(std::string_view kind) const;

  // Makes the folder where it is missing and puts the file there, whole at once. Returns whether it
  // was written: a file with the same content stays, inode and all. kInvalidArgument for a foreign
  // file of that name, which is left alone; kPermissionDenied, kUnavailable, … as the system says.
  Result<bool> Write(const Spec& spec) const;

  // What is on disk of ours, if it can be read and is ours.
  std::optional<Spec> Read(std::string_view kind) const;

  // Removes our files of classes that are not in `enabled`. Only at start: later a container may
  // still hold their names. Returns the files removed.
  std::vector<std::filesystem::path> RemoveDisabled(const std::set<std::string>& enabled) const;

  // Other files of this folder with devices that `spec` has too, each with their names: a runtime
  // refuses a name that two files of one folder define.
  std::map<std::filesystem::path, std::vector<std::string>> Conflicts(const Spec& spec) const;

  // Differs from an earlier answer where a file that is not ours has come, gone or changed since.
  std::string OthersState() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace ndp::cdi
