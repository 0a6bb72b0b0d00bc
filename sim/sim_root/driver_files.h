// What a driver package installs: libraries, binaries, firmware, configuration.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "sim_state/layout.h"

namespace ndp::sim_root {

inline constexpr char kLibraryFolder[] =
#if defined(__aarch64__)
    "usr/lib/aarch64-linux-gnu";
#else
    "usr/lib/x86_64-linux-gnu";
#endif

using sim_state::DriverLayout;

// Of the machine whose files are under `machine`: where the driver is, and where its nodes are. A
// driver container brings a /dev of its own, GKE's installer does not.
std::filesystem::path DriverRoot(const std::filesystem::path& machine,
                                 const sim_state::Control& control);
std::filesystem::path DevRoot(const std::filesystem::path& machine,
                              const sim_state::Control& control);

// `root` is the driver's; `nvml` is the simulated library to install. Files of another version are
// removed, so this is a driver upgrade as well.
Status WriteDriverFiles(const std::filesystem::path& root, const std::string& version,
                        const std::filesystem::path& nvml,
                        DriverLayout layout = DriverLayout::kPackages);
// Libraries, programs and firmware.
Status RemoveDriverFiles(const std::filesystem::path& root,
                         DriverLayout layout = DriverLayout::kPackages);

// The installed libnvidia-ml.so.<version>.
std::filesystem::path InstalledNvml(const std::filesystem::path& root, const std::string& version,
                                    DriverLayout layout = DriverLayout::kPackages);

// Takes the symbol out of the installed library, or puts it back: dlsym fails, or not, for those
// who load the file from now on. The file is replaced, not changed: who has it mapped keeps it.
Status SetSymbolMissing(const std::filesystem::path& library, const std::string& function,
                        bool missing);

// The files of platforms without an NVML driver.
Status WriteTegraFiles(const std::filesystem::path& root);
Status WriteWslFiles(const std::filesystem::path& root);

}  // namespace ndp::sim_root
