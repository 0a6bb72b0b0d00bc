// What changes in one folder (inotify). Files are replaced by rename and sockets re-created, so it
// is always the folder that is watched, and the callback filters names. Loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
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

  // A folder that is missing is waited for, at its nearest existing ancestor. Where inotify itself
  // fails (its limits, mostly), kLookAgain comes every `poll` until it works.
  static std::unique_ptr<DirWatch> Open(EventLoop& loop, const std::filesystem::path& folder,
                                        Callback callback, Duration poll = kPoll);
  DirWatch(const DirWatch&) = delete;
  DirWatch& operator=(const DirWatch&) = delete;

  static constexpr Duration kPoll = std::chrono::seconds(20);

  const std::filesystem::path& folder() const { return folder_; }
  // Whether the folder was there at the last look.
  bool watching() const { return watching_; }
  // Why inotify does not work here, so that polls alone tell of changes; empty while it does.
  const std::string& trouble() const { return trouble_; }

 private:
  DirWatch(EventLoop& loop, const std::filesystem::path& folder, Callback callback, Duration poll);
  void Begin();
  void Arm();
  void Read();
  void Poll();
  void Fail(int error);

  EventLoop& loop_;
  std::filesystem::path folder_;
  std::shared_ptr<Callback> callback_;  // shared: a call may destroy us
  Duration poll_;
  bool watching_ = false;
  std::string trouble_;
  int watch_ = -1;   // inotify's id of the folder or of the ancestor
  int parent_ = -1;  // of the folder's parent, while the folder itself is watched
  UniqueFd fd_;
  EventLoop::Handle ready_;
  EventLoop::Handle poll_timer_;  // while there is trouble
};

}  // namespace ndp::os
