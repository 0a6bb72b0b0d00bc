#include "os/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "os/host_fs.h"

namespace ndp::os {
namespace {

Status LockNow(int fd, const std::filesystem::path& path) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) {
    return Error(Code::kUnavailable, "lock " + path.string() + ": held by another process");
  }
  return ErrnoError(errno, "lock " + path.string());
}

Status WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write");
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

bool HasContent(const std::filesystem::path& path, std::string_view content, mode_t mode) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if ((info.st_mode & 07777) != mode) return false;
  if (static_cast<std::size_t>(info.st_size) != content.size()) return false;
  const auto current = HostFs().Read(std::filesystem::absolute(path).string(), content.size());
  return current.ok() && *current == content;
}

Status WriteNew(const std::filesystem::path& path, std::string_view content,
                const WriteOptions& options) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoError(errno, "create " + path.string());
  NDP_TRY(WriteAll(fd.get(), content));
  if (fchmod(fd.get(), options.mode) != 0) return ErrnoError(errno, "set mode");
  if (options.sync && fsync(fd.get()) != 0) return ErrnoError(errno, "sync");
  return {};
}

bool IsOnProc(const std::filesystem::path& path) {
  struct statfs system{};
  return statfs(path.parent_path().c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// Where the links of the path lead, whether it exists or not. Not beyond /proc, where what a link
// says (`pipe:[7]`, `/tmp/x (deleted)`) need not be a path.
Result<std::filesystem::path> FollowLinks(std::filesystem::path path) {
  for (int links = 0; links < 40; ++links) {
    std::error_code ec;
    if (IsOnProc(path) || !std::filesystem::is_symlink(path, ec)) return path;
    const std::filesystem::path target = std::filesystem::read_symlink(path, ec);
    if (ec) return ErrnoError(ec.value(), "read link " + path.string());
    path = path.parent_path() / target;
  }
  return ErrnoError(ELOOP, "follow " + path.string());
}

Status WriteInto(const std::filesystem::path& path, std::string_view content) {
  const std::string context = "write into " + path.string();
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
  if (!fd) return ErrnoError(errno, context);
  if (auto status = WriteAll(fd.get(), content); !status.ok()) {
    return std::move(status).error().WithContext(context);
  }
  return {};
}

}  // namespace

Result<bool> AtomicWriteFile(const std::filesystem::path& path, std::string_view content,
                             WriteOptions options) {
  if (HasContent(path, content, options.mode)) return false;
  const std::filesystem::path temporary =
      path.parent_path() / ("." + path.filename().string() + "." + std::to_string(getpid()));
  const std::string context = "write " + path.string();
  unlink(temporary.c_str());  // left by an earlier process with our id
  if (auto status = WriteNew(temporary, content, options); !status.ok()) {
    unlink(temporary.c_str());
    return std::move(status).error().WithContext(context);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = ErrnoError(errno, context + ": rename into place");
    unlink(temporary.c_str());
    return error;
  }
  return true;
}

Status WriteNamedFile(const std::filesystem::path& path, std::string_view content) {
  NDP_TRY(const std::filesystem::path file, FollowLinks(path));
  struct stat info{};
  const bool exists = stat(file.c_str(), &info) == 0;
  if (exists && S_ISBLK(info.st_mode)) {
    return Error(Code::kInvalidArgument, "write " + path.string() + ": it is a disk");
  }
  // A directory is refused by the rename.
  const bool replaceable = S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
  if (exists && (!replaceable || IsOnProc(file))) return WriteInto(file, content);
  NDP_TRY(MakeFolder(file.parent_path()));
  auto written = AtomicWriteFile(file, content);
  if (!written.ok()) return std::move(written).error();
  return {};
}

Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code ec;
  if (folder.empty() || std::filesystem::is_directory(folder, ec)) return {};
  if (folder.parent_path() != folder) NDP_TRY(MakeFolder(folder.parent_path()));
  if (folder.filename().empty()) return {};  // "a/" is "a"
  if (mkdir(folder.c_str(), 0755) != 0) {
    const int why = errno;
    if (why == EEXIST && std::filesystem::is_directory(folder, ec)) return {};
    return ErrnoError(why, "make folder " + folder.string());
  }
  if (chmod(folder.c_str(), 0755) != 0) return ErrnoError(errno, "chmod " + folder.string());
  return {};
}

Result<FileLock> FileLock::Acquire(const std::filesystem::path& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return ErrnoError(errno, "lock " + path.string());
  NDP_TRY(LockNow(fd.get(), path));
  return FileLock(std::move(fd));
}

Result<FileLock> FileLock::OfFolder(const std::filesystem::path& folder, Duration longest) {
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "lock " + folder.string());
  const auto end = std::chrono::steady_clock::now() + longest;
  Status locked = LockNow(fd.get(), folder);
  while (!locked.ok() && locked.error().code() == Code::kUnavailable &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    locked = LockNow(fd.get(), folder);
  }
  if (!locked.ok()) return std::move(locked).error();
  return FileLock(std::move(fd));
}

Result<FileIdentity> Identify(const std::filesystem::path& path) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return ErrnoError(errno, "look at " + path.string());
  return FileIdentity{.device = info.st_dev,
                      .inode = info.st_ino,
                      .modified_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

}  // namespace ndp::os
