// Unix stream sockets: a listener whose file can be put back, and a connect that never waits.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "base/result.h"
#include "os/event_loop.h"
#include "os/file.h"
#include "os/unique_fd.h"

namespace ndp::os {

// A listening descriptor and its file: whoever sees the file can connect, since it is bound and
// listens under a temporary name, then is renamed. Replaces whatever lies at the path.
class UnixSocketFile {
 public:
  // kNotFound where the folder is missing. The descriptor is non-blocking and close-on-exec.
  static Result<UnixSocketFile> Open(const std::filesystem::path& path, mode_t mode);
  UnixSocketFile(UnixSocketFile&&) = default;
  UnixSocketFile& operator=(UnixSocketFile&& other) noexcept;
  // Removes the file if it is still ours.
  ~UnixSocketFile();

  int fd() const { return fd_.get(); }
  // Whether our own file is at the path.
  bool Intact() const;
  // From now on the file stays where it is (for a successor of the same path).
  void LeaveFile() { owns_file_ = false; }

 private:
  UnixSocketFile(std::filesystem::path path, UniqueFd fd, FileIdentity identity)
      : path_(std::move(path)), fd_(std::move(fd)), identity_(identity) {}

  std::filesystem::path path_;
  UniqueFd fd_;
  FileIdentity identity_;
  bool owns_file_ = true;
};

// Listens at a path of its own and hands out accepted connections (non-blocking, close-on-exec).
// gRPC's own listener cannot bind a second time after the kubelet has removed its file, and unlinks
// a successor's file when it ends; this one does neither. Loop thread only.
class UnixListener {
 public:
  struct Options {
    std::filesystem::path path;
    mode_t mode = 0600;
  };
  // Owns the descriptor; may destroy the listener.
  using Accepted = std::function<void(UniqueFd)>;

  // Fails as UnixSocketFile does.
  static Result<std::unique_ptr<UnixListener>> Open(EventLoop& loop, Options options,
                                                    Accepted on_accept);
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  const std::filesystem::path& path() const { return options_.path; }
  bool Intact() const { return file_.Intact(); }
  // Makes the file anew, with a new listening descriptor; accepted connections live on, those that
  // still waited are handed out now. Nothing to do where Intact().
  Status PutBack();
  void LeaveFile() { file_.LeaveFile(); }

 private:
  UnixListener(EventLoop& loop, Options options, UnixSocketFile file, Accepted on_accept);
  void WatchFile();
  void Accept();

  EventLoop& loop_;
  Options options_;
  std::shared_ptr<Accepted> on_accept_;
  UnixSocketFile file_;
  bool starved_ = false;     // of descriptors or memory, and said so
  EventLoop::Handle watch_;  // ends before the descriptor does
};

// A connected, non-blocking descriptor at once, or: kNotFound (no file), kUnavailable (nobody
// listens), kDeadlineExceeded (somebody does, but the queue is full), kPermissionDenied. Any
// thread.
Result<UniqueFd> ConnectUnix(const std::filesystem::path& path);

// Whether somebody listens there, by ConnectUnix's answer: also who is too busy to accept.
bool SomebodyListens(const Result<UniqueFd>& connection);

// The same together with the identity of the very file that was connected to, however often the
// file is replaced meanwhile (kUnavailable where that never ends).
struct IdentifiedConnection {
  UniqueFd fd;
  FileIdentity file;
};
Result<IdentifiedConnection> ConnectUnixIdentified(const std::filesystem::path& path);

}  // namespace ndp::os
