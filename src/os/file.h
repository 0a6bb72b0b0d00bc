// Small things done with files: whole writes, locks, identity. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "os/unique_fd.h"

namespace ndp::os {

struct WriteOptions {
  mode_t mode = 0644;  // exactly, whatever the umask
  bool sync = false;   // on the disk before the rename, for files that must survive a power cut
};

// Readers see the old or the new content, never a part; the mode is right from the first moment.
// A file that has this content and mode already is left untouched. Returns whether it was written.
// The temporary file is hidden (".name.pid"), beside the target.
Result<bool> AtomicWriteFile(const std::filesystem::path& path, std::string_view content,
                             WriteOptions options = {});

// Writes a file that a person has named. Links are followed, and what is no regular file (a device,
// a pipe, a descriptor in /proc) is written into, so that the name goes on meaning the same: to
// replace /dev/null would break the machine. kInvalidArgument for a disk. A regular file is
// replaced as AtomicWriteFile does, and its folder is made where it is missing. May block as long
// as a pipe has no reader.
Status WriteNamedFile(const std::filesystem::path& path, std::string_view content);

// With its parents, each that is missing with mode 0755 whatever the umask. One that is there stays
// as it is.
Status MakeFolder(const std::filesystem::path& folder);

// Held until destroyed or the process ends; the file stays.
class FileLock {
 public:
  // Never waits: kUnavailable where another process (or another FileLock) holds it.
  static Result<FileLock> Acquire(const std::filesystem::path& path);
  // Of a folder itself: no file is made. Waits for another holder, so long at most.
  static Result<FileLock> OfFolder(const std::filesystem::path& folder, Duration longest);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// Tells a file from one that was put in its place, also where the inode's number is used again.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;  // a socket's never changes
  bool operator==(const FileIdentity&) const = default;
};

// Of the path itself, not of a link's target.
Result<FileIdentity> Identify(const std::filesystem::path& path);

}  // namespace ndp::os
