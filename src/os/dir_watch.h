// What changes in one folder (inotify). Files are replaced by rename and sockets re-created, so it
// is always the folder that is watched, and the callback filters names. Loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "os/event_loop.h"
#include "os/unique_fd.h"

namespace ndp::os {

class DirWatch {
 public:
  enum class Change {
    kCreated,   // a file may still be empty, or half written: kWritten follows
    kMovedIn,   // also over an older file
    kVanished,  // deleted, or moved away
    kWritten,   // closed after writing
    kLookAgain  // the folder itself came or went, or events were lost: name is empty
  };
  // May destroy the watch.
  using Callback = std::function<void(Change, std::string_view name)>;

  // A folder that is missing is waited for, at its nearest existing ancestor. Fails only where
  // inotify itself does (its limits).
  static Result<std::unique_ptr<DirWatch>> Open(EventLoop& loop,
                                                const std::filesystem::path& folder,
                                                Callback callback);
  DirWatch(const DirWatch&) = delete;
  DirWatch& operator=(const DirWatch&) = delete;

  // Whether the folder was there at the last look.
  bool watching() const { return watching_; }

 private:
  DirWatch(const std::filesystem::path& folder, Callback callback);
  void Arm();
  void Read();

  std::filesystem::path folder_;
  std::shared_ptr<Callback> callback_;  // shared: a call may destroy us
  bool watching_ = false;
  int watch_ = -1;  // inotify's id of the folder or of the ancestor
  UniqueFd fd_;
  EventLoop::Handle ready_;
};

}  // namespace ndp::os
