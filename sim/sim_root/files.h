// Writing files beneath a root. Parents are made; an existing file is replaced by rename, so that a
// reader sees the old or the new text and a process that has the old one mapped keeps it.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace ndp::sim_root {

// Does nothing where the file holds that text already: watchers are not woken for nothing.
Status WriteFile(const std::filesystem::path& path, std::string_view text, unsigned mode = 0644);
// Target as it is written, relative or not.
Status WriteLink(const std::filesystem::path& path, const std::filesystem::path& target);
Result<std::string> ReadFile(const std::filesystem::path& path);
// A file or a whole folder; absent is fine.
Status Remove(const std::filesystem::path& path);

}  // namespace ndp::sim_root
