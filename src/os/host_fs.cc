#include "os/host_fs.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/text.h"
#include "os/unique_fd.h"

namespace ndp::os {
namespace {

// One field after another of a dev.list line.
std::string_view NextField(std::string_view& line) {
  line = Trim(line);
  const std::size_t end = line.find_first_of(" \t");
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(field.size());
  return field;
}

std::optional<unsigned> ParseNumber(std::string_view text, int base) {
  unsigned value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  auto [at, error] = std::from_chars(begin, end, value, base);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  return value;
}

// "path c major minor mode-octal gid"; nullopt where the line names another path.
Result<std::optional<DeviceNode>> ParseDevListLine(std::string_view line, std::string_view wanted) {
  if (NextField(line) != wanted) return std::optional<DeviceNode>();
  const std::string_view kind = NextField(line);
  const auto major = ParseNumber(NextField(line), 10);
  const auto minor = ParseNumber(NextField(line), 10);
  const auto mode = ParseNumber(NextField(line), 8);
  const auto gid = ParseNumber(NextField(line), 10);
  if (kind != "c" || !major || !minor || !mode || !gid) {
    return Error(Code::kInvalidArgument, "want `path c major minor mode-octal gid`");
  }
  return std::optional(
      DeviceNode{.major = *major, .minor = *minor, .mode = *mode & 07777, .gid = *gid});
}

}  // namespace

HostFs::HostFs(std::filesystem::path root)
    : root_(root.empty() ? std::filesystem::path("/") : std::move(root)) {}

std::filesystem::path HostFs::Path(std::string_view path) const {
  // Normalised as an absolute path, ".." at the root stays at the root.
  const std::filesystem::path absolute =
      (std::filesystem::path("/") / std::filesystem::path(path).relative_path()).lexically_normal();
  const std::filesystem::path relative = absolute.relative_path();
  return relative.empty() ? root_ : root_ / relative;
}

Result<std::string> HostFs::Read(std::string_view path, std::size_t limit) const {
  const std::string file = Path(path).string();
  // O_NONBLOCK: a FIFO where a file is expected must not stop the program.
  UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return ErrnoError(errno, "open " + file);
  std::string text;
  std::size_t size = 0;
  while (true) {
    // Not sized by fstat: files in /proc and /sys say 0.
    text.resize(size + std::min<std::size_t>(std::max<std::size_t>(size, 4096), 1 << 20));
    const ssize_t got = read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read " + file);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > limit) {
      return Error(Code::kInvalidArgument,
                   fmt::format("read {}: larger than {} bytes", file, limit));
    }
  }
  text.resize(size);
  return text;
}

Result<std::vector<std::string>> HostFs::List(std::string_view path) const {
  const std::filesystem::path folder = Path(path);
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(folder, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) return ErrnoError(error.value(), "list " + folder.string());
  std::ranges::sort(names);
  return names;
}

bool HostFs::Exists(std::string_view path) const {
  std::error_code error;
  return std::filesystem::exists(Path(path), error);
}

bool HostFs::IsDirectory(std::string_view path) const {
  std::error_code error;
  return std::filesystem::is_directory(Path(path), error);
}

Result<DeviceNode> HostFs::Device(std::string_view path) const {
  const std::string file = Path(path).string();
  struct stat info{};
  const int error = lstat(file.c_str(), &info) == 0 ? 0 : errno;
  if (error == 0 && S_ISCHR(info.st_mode)) {
    return DeviceNode{.major = major(info.st_rdev),
                      .minor = minor(info.st_rdev),
                      .mode = info.st_mode & 07777,
                      .gid = info.st_gid};
  }
  if (root_ != "/") {
    if (auto list = Read("/dev.list"); list.ok()) {
      const std::string wanted = "/" + Path(path).lexically_relative(root_).string();
      int number = 0;
      for (std::string_view line : Split(*list, '\n')) {
        ++number;
        NDP_TRY(const std::optional<DeviceNode> node,
                ParseDevListLine(line, wanted)
                    .Context(fmt::format("{} line {}", Path("/dev.list").string(), number)));
        if (node) return *node;
      }
    }
  }
  if (error != 0) return ErrnoError(error, "look at device node " + file);
  return Error(Code::kInvalidArgument, file + " is not a character device");
}

std::vector<std::string> HostFs::Devices(std::string_view folder) const {
  std::vector<std::string> names = List(folder).value_or({});
  if (root_ != "/") {
    const std::string parent = "/" + Path(folder).lexically_relative(root_).string();
    const std::string list = Read("/dev.list").value_or("");
    for (std::string_view line : Split(list, '\n')) {
      const std::filesystem::path path(NextField(line));
      if (path.parent_path() == parent) names.push_back(path.filename().string());
    }
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  std::erase_if(names, [&](const std::string& name) {
    return !Device((std::filesystem::path(folder) / name).string()).ok();
  });
  return names;
}

}  // namespace ndp::os
