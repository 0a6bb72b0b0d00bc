// /proc and /sys of a simulated machine, as far as anything on a GPU node reads them.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "sim_state/layout.h"

namespace ndp::sim_root {

// All files that follow from the state: written anew on every change, left alone where their text
// stays the same; what belongs to GPUs and instances that are gone is removed.
Status WriteHostFiles(const std::filesystem::path& root, const sim_state::Control& control);

// What a boot gives: boot id and the module's folder, which tells by its inode that it was made
// anew.
Status WriteBootId(const std::filesystem::path& root, const std::string& boot_id);
Status RemakeModuleFolder(const std::filesystem::path& root, const sim_state::Control& control);

// /proc/driver/nvidia-caps/mig-minors: every instance that GPUs with MIG could have.
std::string FormatMigMinors(const sim_state::Control& control);

}  // namespace ndp::sim_root
