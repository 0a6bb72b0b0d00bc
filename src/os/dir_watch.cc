#include "os/dir_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/result.h"

namespace ndp::os {
namespace {

constexpr std::uint32_t kEntries =
    IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_CLOSE_WRITE;
constexpr std::uint32_t kFolder = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// A folder that is removed says so itself only when nobody holds it any more, and a socket that was
// bound in it does.
constexpr std::uint32_t kOfParent = IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR;

DirWatch::Change ToChange(std::uint32_t mask) {
  if ((mask & IN_CREATE) != 0) return DirWatch::Change::kCreated;
  if ((mask & IN_MOVED_TO) != 0) return DirWatch::Change::kMovedIn;
  if ((mask & (IN_DELETE | IN_MOVED_FROM)) != 0) return DirWatch::Change::kVanished;
  return DirWatch::Change::kWritten;
}

}  // namespace

DirWatch::DirWatch(EventLoop& loop, const std::filesystem::path& folder, Callback callback,
                   Duration poll)
    : loop_(loop),
      folder_(std::filesystem::absolute(folder).lexically_normal()),
      callback_(std::make_shared<Callback>(std::move(callback))),
      poll_(poll) {
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // a trailing slash
}

std::unique_ptr<DirWatch> DirWatch::Open(EventLoop& loop, const std::filesystem::path& folder,
                                         Callback callback, Duration poll) {
  std::unique_ptr<DirWatch> watch(new DirWatch(loop, folder, std::move(callback), poll));
  watch->Begin();
  return watch;
}

void DirWatch::Begin() {
  if (!fd_) {
    fd_.Reset(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!fd_) return Fail(errno);
    ready_ = loop_.Watch(fd_.get(), EventLoop::Ready::kRead, [this] { Read(); });
  }
  Arm();
  if (watch_ < 0) return Fail(errno);
  trouble_.clear();
}

// The kernel's words for its own limits lead astray.
void DirWatch::Fail(int error) {
  trouble_ = "inotify: " + ErrnoError(error, "watch " + folder_.string()).message();
  if (error == EMFILE) trouble_ += " (fs.inotify.max_user_instances, or the limit of open files)";
  if (error == ENOSPC) trouble_ += " (fs.inotify.max_user_watches)";
  if (!poll_timer_) poll_timer_ = loop_.Every(poll_, [this] { Poll(); });
}

void DirWatch::Poll() {
  Begin();
  if (trouble_.empty()) poll_timer_.Cancel();
  const std::shared_ptr<Callback> callback = callback_;
  (*callback)(Change::kLookAgain, {});  // `this` may be gone
}

// Watches the folder, or its nearest ancestor that is there.
void DirWatch::Arm() {
  while (true) {
    std::filesystem::path target = folder_;
    std::filesystem::path missing;
    int watch = -1;
    while (true) {
      watch = inotify_add_watch(fd_.get(), target.c_str(), kEntries | kFolder);
      if (watch >= 0 || (errno != ENOENT && errno != ENOTDIR) || target == target.root_path()) {
        break;
      }
      missing = std::exchange(target, target.parent_path());
    }
    const int error = errno;
    for (const int old : {watch_, parent_}) {
      if (old >= 0 && old != watch) inotify_rm_watch(fd_.get(), old);
    }
    watch_ = watch;
    watching_ = watch >= 0 && missing.empty();
    parent_ = watching_ && folder_.has_parent_path() && folder_ != folder_.root_path()
                  ? inotify_add_watch(fd_.get(), folder_.parent_path().c_str(), kOfParent)
                  : -1;
    errno = error;
    // An ancestor is watched: what is missing may have come between the two calls.
    std::error_code ignored;
    if (watch < 0 || missing.empty() || !std::filesystem::is_directory(missing, ignored)) return;
  }
}

void DirWatch::Read() {
  const std::shared_ptr<Callback> callback = callback_;
  alignas(inotify_event) char buffer[16 * 1024];
  const ssize_t size = read(fd_.get(), buffer, sizeof buffer);
  bool look_again = false;
  for (ssize_t at = 0; at < size;) {
    inotify_event event;
    std::memcpy(&event, buffer + at, sizeof event);
    const char* name = buffer + at + sizeof event;
    at += static_cast<ssize_t>(sizeof event + event.len);
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      look_again = true;
    } else if (event.wd == parent_) {
      if ((event.mask & IN_IGNORED) != 0) {
        parent_ = -1;
      } else if (event.len > 0 && folder_.filename() == name) {
        Arm();
        if (watch_ < 0) Fail(errno);
        look_again = true;
      }
    } else if (event.wd != watch_) {
      continue;  // of a watch that was given up
    } else if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0 ||
               !watching_) {
      const bool before = watching_;
      if ((event.mask & IN_IGNORED) != 0) watch_ = -1;  // the kernel has removed it
      Arm();
      if (watch_ < 0) Fail(errno);
      look_again = look_again || before || watching_;
    } else if (event.len > 0) {
      (*callback)(ToChange(event.mask), name);
      if (callback.use_count() == 1) return;  // `this` is gone
    }
  }
  if (look_again) (*callback)(Change::kLookAgain, {});
}

}  // namespace ndp::os
