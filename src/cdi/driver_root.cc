#include "cdi/driver_root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/text.h"
#include "cdi/elf.h"
#include "cdi/paths.h"
#include "os/unique_fd.h"

namespace ndp::cdi {
namespace {

// The kernel's own limit (MAXSYMLINKS).
constexpr int kMaxLinks = 40;
constexpr std::size_t kMostMatches = 1024;
// Of all patterns together. Those of a driver's own files come to a few hundred.
constexpr std::size_t kMostExamined = 20'000;

std::optional<std::string> ReadLinkAt(const std::string& file) {
  std::array<char, PATH_MAX> target{};
  ssize_t size = readlink(file.c_str(), target.data(), target.size());
  if (size < 0 || static_cast<std::size_t>(size) == target.size()) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(size));
}

}  // namespace

DriverRoot::DriverRoot(const os::HostFs& fs) : fs_(fs), prefix_(fs.root().string()) {
  while (prefix_.ends_with('/')) prefix_.pop_back();
}

std::string DriverRoot::FileOf(std::string_view clean) const {
  std::string file = prefix_;
  file += clean;
  return file;
}

// One component after another, each joined to a prefix that holds no link, so that the kernel never
// follows one for us.
std::optional<std::string> DriverRoot::Walk(std::string_view path, int& links_left,
                                            bool* leaves) const {
  std::vector<std::string> todo;  // reversed
  auto push = [&](std::string_view text) {
    std::vector<std::string_view> parts = Split(text, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) todo.emplace_back(*part);
  };
  push(path);
  std::string real = "/";
  while (!todo.empty()) {
    std::string part = std::move(todo.back());
    todo.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (real == "/" && leaves != nullptr) *leaves = true;
      real = ParentPath(real);
      continue;
    }
    std::string next = fmt::format("{}/{}", real == "/" ? "" : real, part);
    struct stat info{};
    std::string file = FileOf(next);
    if (lstat(file.c_str(), &info) != 0) return std::nullopt;
    if (!S_ISLNK(info.st_mode)) {
      real = std::move(next);
      continue;
    }
    auto target = ReadLinkAt(file);
    if (!target || --links_left < 0) return std::nullopt;
    if (target->starts_with('/')) {
      real = "/";
      if (leaves != nullptr) *leaves = true;
    }
    push(*target);
  }
  return real;
}

std::optional<std::string> DriverRoot::ResolveFolder(std::string_view folder) const {
  if (auto known = folders_.find(folder); known != folders_.end()) return known->second;
  int links_left = kMaxLinks;
  return folders_.emplace(folder, Walk(folder, links_left)).first->second;
}

std::optional<std::string> DriverRoot::Resolve(std::string_view path) const {
  std::string clean = CleanPath(path);
  if (clean == "/") return clean;
  auto folder = ResolveFolder(ParentPath(clean));
  if (!folder) return std::nullopt;
  int links_left = kMaxLinks;
  return Walk(JoinPath(*folder, BaseName(clean)), links_left);
}

std::string DriverRoot::Followable(std::string_view path) const {
  std::string clean = CleanPath(path);
  int links_left = kMaxLinks;
  bool leaves = false;
  auto real = Walk(clean, links_left, &leaves);
  return real && leaves ? *std::move(real) : clean;
}

std::optional<std::string> DriverRoot::ReadLink(std::string_view path) const {
  std::string clean = CleanPath(path);
  auto folder = ResolveFolder(ParentPath(clean));
  if (!folder) return std::nullopt;
  return ReadLinkAt(FileOf(JoinPath(*folder, BaseName(clean))));
}

std::vector<std::string> DriverRoot::LinkChain(std::string_view path) const {
  std::vector<std::string> chain = {CleanPath(path)};
  while (chain.size() <= kMaxLinks) {
    auto target = ReadLink(chain.back());
    if (!target) break;
    chain.push_back(TargetPath(chain.back(), *target));
  }
  return chain;
}

DriverRoot::Kind DriverRoot::KindOf(std::string_view path) const {
  auto real = Resolve(path);
  if (!real) return Kind::kNone;
  struct stat info{};
  if (lstat(FileOf(*real).c_str(), &info) != 0) return Kind::kNone;
  if (S_ISDIR(info.st_mode)) return Kind::kDirectory;
  return (info.st_mode & 0111) != 0 ? Kind::kExecutable : Kind::kFile;
}

bool DriverRoot::IsFile(std::string_view path) const {
  Kind kind = KindOf(path);
  return kind == Kind::kFile || kind == Kind::kExecutable;
}

bool DriverRoot::IsDirectory(std::string_view path) const {
  return KindOf(path) == Kind::kDirectory;
}

bool DriverRoot::IsExecutable(std::string_view path) const {
  return KindOf(path) == Kind::kExecutable;
}

const std::vector<std::string>& DriverRoot::List(const std::string& real_folder) const {
  auto known = listings_.find(real_folder);
  if (known == listings_.end()) {
    // A folder that cannot be read is as good as an empty one.
    known = listings_.emplace(real_folder, fs_.List(real_folder).value_or({})).first;
  }
  return known->second;
}

std::vector<std::string> DriverRoot::Glob(std::string_view folder, std::string_view pattern) const {
  return GlobKind(folder, pattern, /*folders=*/false);
}

std::vector<std::string> DriverRoot::GlobFolders(std::string_view pattern) const {
  std::vector<std::string> found = {"/"};
  for (std::string_view part : Split(pattern, '/')) {
    if (part.empty()) continue;
    std::vector<std::string> next;
    for (const std::string& folder : found) {
      for (std::string& path : GlobKind(folder, part, /*folders=*/true)) {
        if (next.size() < kMostMatches) next.push_back(std::move(path));
      }
    }
    found = std::move(next);
  }
  return found;
}

std::vector<std::string> DriverRoot::GlobKind(std::string_view folder, std::string_view pattern,
                                              bool folders) const {
  std::vector<std::string> found;
  const auto fits = [&](const std::string& path) {
    return folders ? IsDirectory(path) : IsFile(path);
  };
  if (pattern.find('*') == std::string_view::npos) {
    std::string path = JoinPath(folder, pattern);
    if (fits(path)) found.push_back(std::move(path));
    return found;
  }
  auto real = ResolveFolder(CleanPath(folder));
  if (!real) return found;
  for (const std::string& name : List(*real)) {
    if (!WildcardMatch(pattern, name) || !IsPrintablePath(name)) continue;
    if (examined_ == kMostExamined) {
      Note(fmt::format("{}/{}: {} names were looked at before: the rest is left out", folder,
                       pattern, kMostExamined));
      break;
    }
    ++examined_;
    std::string path = JoinPath(folder, name);
    if (!fits(path)) continue;
    if (found.size() == kMostMatches) {
      Note(fmt::format("{}: more than {} files match {}: the rest is left out", folder,
                       kMostMatches, pattern));
      break;
    }
    found.push_back(std::move(path));
  }
  return found;
}

Result<std::string> DriverRoot::ResolveRegular(std::string_view path) const {
  auto real = Resolve(path);
  struct stat info{};
  if (!real || lstat(FileOf(*real).c_str(), &info) != 0) {
    return Error(Code::kNotFound, std::string(path) + ": no such file");
  }
  if (!S_ISREG(info.st_mode)) {
    return Error(Code::kInvalidArgument, *real + ": not a regular file");
  }
  return *std::move(real);
}

Result<std::string> DriverRoot::Read(std::string_view path) const {
  NDP_TRY(std::string real, ResolveRegular(path));
  return fs_.Read(real);
}

Result<std::optional<std::string>> DriverRoot::Soname(std::string_view path) const {
  NDP_TRY(std::string real, ResolveRegular(path));
  // O_NONBLOCK: a FIFO may have taken its place.
  os::UniqueFd fd(
      open(FileOf(real).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return ErrnoError(errno, "open " + real);
  return ReadSoname([&fd](std::uint64_t offset, std::span<std::byte> into) -> std::size_t {
           if (offset > static_cast<std::uint64_t>(LLONG_MAX)) return 0;
           ssize_t got = pread(fd.get(), into.data(), into.size(), static_cast<off_t>(offset));
           return got < 0 ? 0 : static_cast<std::size_t>(got);
         })
      .Context(real);
}

}  // namespace ndp::cdi
