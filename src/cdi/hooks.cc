#include "cdi/hooks.h"

#include <fmt/format.h>

#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

std::vector<std::string> Flags(std::string_view flag, std::span<const std::string> values) {
  std::vector<std::string> args;
  for (const std::string& value : values) {
    args.emplace_back(flag);
    args.push_back(value);
  }
  return args;
}

}  // namespace

void AddHook(const Options& options, std::string_view name, std::vector<std::string> args,
             Edits& edits) {
  if (options.disable_all_hooks || options.disabled_hooks.contains(std::string(name))) return;
  Hook hook{.hook_name = "createContainer", .path = options.hook_path};
  std::string program(BaseName(options.hook_path));
  hook.args.push_back(program);
  // nvidia-ctk has the hooks as sub-commands of its own; nvidia-cdi-hook is nothing but hooks.
  if (program == "nvidia-ctk") hook.args.emplace_back("hook");
  hook.args.emplace_back(name);
  hook.args.insert(hook.args.end(), args.begin(), args.end());
  hook.env = {"NVIDIA_CTK_DEBUG=false"};
  edits.hooks.push_back(std::move(hook));
}

void AddSymlinkHook(const Options& options, std::span<const std::string> links, Edits& edits) {
  if (!links.empty()) AddHook(options, kCreateSymlinks, Flags("--link", links), edits);
}

std::string SymlinkArg(std::string_view target, std::string_view path) {
  return fmt::format("{}::{}", target, path);
}

void AddLdcacheHook(const Options& options, std::span<const std::string> folders, Edits& edits) {
  if (!folders.empty()) AddHook(options, kUpdateLdcache, Flags("--folder", folders), edits);
}

}  // namespace ndp::cdi
