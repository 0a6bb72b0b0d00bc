// Hooks: what NVIDIA's hook program (nvidia-cdi-hook, or nvidia-ctk) does inside a container just
// before it starts. Pure, any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cdi/options.h"
#include "cdi/spec.h"

namespace ndp::cdi {

inline constexpr std::string_view kCreateSymlinks = "create-symlinks";
inline constexpr std::string_view kEnableCudaCompat = "enable-cuda-compat";
inline constexpr std::string_view kUpdateLdcache = "update-ldcache";
inline constexpr std::string_view kDisableDeviceNodeModification =
    "disable-device-node-modification";
inline constexpr std::string_view kUpdateApplicationProfile = "update-application-profile";

// Appends the hook to `edits`, unless it is disabled.
void AddHook(const Options& options, std::string_view name, std::vector<std::string> args,
             Edits& edits);

// "target::path" each: in the container, `path` becomes a link to `target`. None for no links.
void AddSymlinkHook(const Options& options, std::span<const std::string> links, Edits& edits);
std::string SymlinkArg(std::string_view target, std::string_view path);

// None for no folders.
void AddLdcacheHook(const Options& options, std::span<const std::string> folders, Edits& edits);

}  // namespace ndp::cdi
