#include "sim_root/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace ndp::sim_root {
namespace {

namespace fs = std::filesystem;

Status MakeParent(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return ErrnoError(error.value(), "create folder " + path.parent_path().string());
  return {};
}

Status Rename(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return ErrnoError(errno, "rename to " + to.string());
  return {};
}

}  // namespace

Result<std::string> ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(Code::kNotFound, "open " + path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

Status WriteFile(const fs::path& path, std::string_view text, unsigned mode) {
  if (const auto old = ReadFile(path); old.ok() && *old == text && !fs::is_symlink(path)) return {};
  NDP_TRY(MakeParent(path));
  const fs::path fresh = path.string() + ".ndp-sim-new";
  {
    std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) return ErrnoError(errno, "write " + fresh.string());
  }
  if (chmod(fresh.c_str(), mode) != 0) return ErrnoError(errno, "chmod " + fresh.string());
  return Rename(fresh, path);
}

Status WriteLink(const fs::path& path, const fs::path& target) {
  std::error_code error;
  if (fs::read_symlink(path, error) == target && !error) return {};
  NDP_TRY(MakeParent(path));
  const fs::path fresh = path.string() + ".ndp-sim-new";
  unlink(fresh.c_str());
  if (symlink(target.c_str(), fresh.c_str()) != 0) {
    return ErrnoError(errno, "link " + fresh.string());
  }
  return Rename(fresh, path);
}

Status Remove(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return ErrnoError(error.value(), "remove " + path.string());
  return {};
}

}  // namespace ndp::sim_root
