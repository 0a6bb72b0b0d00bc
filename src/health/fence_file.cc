#include "health/fence_file.h"

#include <sys/stat.h>

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "os/host_fs.h"

namespace ndp::health {
namespace {

constexpr std::size_t kLargestRules = 1 << 20;
constexpr std::string_view kClear = "clear";

// nullopt: missing.
Result<std::optional<std::string>> ReadIfThere(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return std::optional<std::string>();
  if (error) return ErrnoError(error.value(), path.string());
  if (status.type() != std::filesystem::file_type::regular) {
    return Error(Code::kInvalidArgument, path.string() + ": not a file");
  }
  // Never more than that into memory, and never a wait for what took the file's place meanwhile.
  auto text = os::HostFs().Read(std::filesystem::absolute(path).string(), kLargestRules);
  if (!text.ok()) return std::move(text).error();
  return std::optional(*std::move(text));
}

}  // namespace

FenceFile::FenceFile(os::EventLoop& loop, std::filesystem::path file, Callbacks callbacks)
    : file_(std::move(file)), callbacks_(std::move(callbacks)) {
  watch_ = os::DirWatch::Open(
      loop, file_.parent_path(),
      [this](os::DirWatch::Change change, std::string_view name) { OnChange(change, name); });
  Look();
  LookAtClear();
}

// Each file is read when something happened to it, or to what it may be a link into; never while it
// is being written: an empty `clear` means all.
void FenceFile::OnChange(os::DirWatch::Change change, std::string_view name) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(file_.parent_path() / name, error);
  if (change == os::DirWatch::Change::kCreated && std::filesystem::is_regular_file(status)) return;
  if (name != kClear) Look();
  if (name != file_.filename().native()) LookAtClear();
}

void FenceFile::Look() {
  auto content = ReadIfThere(file_);
  if (!content.ok()) return callbacks_.broken(content.error());
  if (looked_ && *content == content_) return;
  looked_ = true;
  content_ = *std::move(content);
  auto fences = ParseFences(content_.value_or("")).Context(file_.string());
  if (!fences.ok()) return callbacks_.broken(fences.error());
  callbacks_.fences(*std::move(fences));
}

void FenceFile::LookAtClear() {
  const std::filesystem::path path = file_.parent_path() / kClear;
  struct stat status{};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const WallTime written{std::chrono::seconds(status.st_mtim.tv_sec) +
                         std::chrono::nanoseconds(status.st_mtim.tv_nsec)};
  if (written <= cleared_) return;
  auto content = ReadIfThere(path);
  if (!content.ok()) return callbacks_.broken(content.error());
  cleared_ = written;
  std::vector<std::string> gpus;
  const std::string text = content->value_or("");
  for (std::string_view line : Split(text, '\n')) {
    if (!Trim(line).empty()) gpus.emplace_back(Trim(line));
  }
  callbacks_.clear(std::move(gpus), written);
}

}  // namespace ndp::health
