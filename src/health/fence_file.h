// Follows the fences file, and the file `clear` beside it: both are edited by people (or by a
// ConfigMap's swapped links), so the folder is watched and the content compared. Loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "health/fences.h"
#include "os/dir_watch.h"
#include "os/event_loop.h"

namespace ndp::health {

class FenceFile {
 public:
  struct Callbacks {
    // The file was read well, first at Open; a missing file has no fences.
    std::function<void(std::vector<Fence>)> fences;
    // It cannot be read or understood: the fences before stay.
    std::function<void(const Error&)> broken;
    // `clear` was written at that time: GPUs named in it, one a line; none named means all. What
    // went wrong later than that is not meant.
    std::function<void(std::vector<std::string> gpus, WallTime written)> clear;
  };

  FenceFile(os::EventLoop& loop, std::filesystem::path file, Callbacks callbacks);
  const os::DirWatch& folder() const { return *watch_; }

 private:
  void OnChange(os::DirWatch::Change change, std::string_view name);
  void Look();
  void LookAtClear();

  std::filesystem::path file_;
  Callbacks callbacks_;
  std::optional<std::string> content_;  // nullopt: missing
  bool looked_ = false;
  WallTime cleared_{};
  std::unique_ptr<os::DirWatch> watch_;
};

}  // namespace ndp::health
