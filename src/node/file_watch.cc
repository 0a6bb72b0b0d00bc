#include "node/file_watch.h"

#include <fstream>
#include <iterator>

namespace ndp::node {
namespace {

// Editors and kubelets change a folder in several steps.
constexpr Duration kSettle = std::chrono::milliseconds(50);

constexpr std::uintmax_t kMostFile = 4U << 20;

}  // namespace

std::unique_ptr<FileWatch> FileWatch::Open(os::EventLoop& loop, std::filesystem::path file,
                                           std::function<void()> changed) {
  std::unique_ptr<FileWatch> watch(new FileWatch(loop, std::move(file), std::move(changed)));
  auto folder = watch->file_.parent_path();
  watch->watch_ = os::DirWatch::Open(loop, folder.empty() ? "." : folder,
                                     [w = watch.get()](os::DirWatch::Change, std::string_view) {
                                       if (w->settle_) return;
                                       w->settle_ = w->loop_.After(kSettle, [w] { w->Look(); });
                                     });
  return watch;
}

FileWatch::FileWatch(os::EventLoop& loop, std::filesystem::path file, std::function<void()> changed)
    : loop_(loop), file_(std::move(file)), changed_(std::move(changed)), content_(Content()) {}

std::optional<std::string> FileWatch::Content() const {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(file_, ec)) return std::nullopt;
  // What is no configuration is refused when it is read; here it need not be kept.
  if (const auto size = std::filesystem::file_size(file_, ec); ec || size > kMostFile) {
    return "(" + std::to_string(size) + " bytes)";
  }
  std::ifstream in(file_, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void FileWatch::Look() {
  settle_.Cancel();
  auto now = Content();
  if (now == content_) return;
  content_ = std::move(now);
  changed_();
}

}  // namespace ndp::node
