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

  // Replaces whatever lies at the path. Whoever sees the file can connect: it is bound and listens
  // under a temporary name, then is renamed. kNotFound where the folder is missing.
  static Result<std::unique_ptr<UnixListener>> Open(EventLoop& loop, Options options,
                                                    Accepted on_accept);
  // Removes the file if it is still ours.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  const std::filesystem::path& path() const { return options_.path; }
  // Whether our own file is at the path.
  bool Intact() const;
  // Makes the file anew, with a new listening descriptor; accepted connections live on, those that
  // still waited are handed out now. Nothing to do where Intact().
  Status PutBack();
  // From now on the file stays where it is (for a successor of the same path).
  void LeaveFile() { leave_file_ = true; }

 private:
  struct Bound {
    UniqueFd fd;
    FileIdentity identity;
  };
  UnixListener(EventLoop& loop, Options options, Accepted on_accept);
  static Result<Bound> Bind(const Options& options);
  void Install(Bound bound);
  void Accept();

  EventLoop& loop_;
  Options options_;
  std::shared_ptr<Accepted> on_accept_;
  FileIdentity identity_;
  bool leave_file_ = false;
  UniqueFd fd_;
  EventLoop::Handle watch_;  // before fd_ closes
};

// A connected, non-blocking descriptor at once, or: kNotFound (no file), kUnavailable (nobody
// accepts, or its queue is full), kPermissionDenied. Any thread.
Result<UniqueFd> ConnectUnix(const std::filesystem::path& path);

}  // namespace ndp::os
