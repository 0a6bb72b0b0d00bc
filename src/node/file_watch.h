// Calls back when the content of one file changes: the configuration, say. Files are replaced by
// rename, and a ConfigMap's by a swapped link to a folder, so the folder is watched and the content
// compared. Loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "os/dir_watch.h"
#include "os/event_loop.h"

namespace ndp::node {

class FileWatch {
 public:
  static std::unique_ptr<FileWatch> Open(os::EventLoop& loop, std::filesystem::path file,
                                         std::function<void()> changed);
  const os::DirWatch& folder() const { return *watch_; }

 private:
  FileWatch(os::EventLoop& loop, std::filesystem::path file, std::function<void()> changed);
  std::optional<std::string> Content() const;  // nullopt: absent or unreadable
  void Look();

  os::EventLoop& loop_;
  std::filesystem::path file_;
  std::function<void()> changed_;
  std::optional<std::string> content_;
  std::unique_ptr<os::DirWatch> watch_;
  os::EventLoop::Handle settle_;
};

}  // namespace ndp::node
