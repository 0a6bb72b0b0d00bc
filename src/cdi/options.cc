#include "cdi/options.h"

#include <sys/utsname.h>

#include <cstdlib>

#include "base/text.h"
#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

// As Go's filepath.SplitList: nothing for an empty text.
std::vector<std::string> SplitList(const char* text) {
  std::vector<std::string> parts;
  if (text == nullptr || *text == '\0') return parts;
  for (std::string_view part : Split(text, ':')) parts.emplace_back(part);
  return parts;
}

}  // namespace

Environment ProcessEnvironment() {
  Environment environment;
  environment.path = SplitList(std::getenv("PATH"));
  environment.data_dirs = SplitList(std::getenv("XDG_DATA_DIRS"));
  if (environment.data_dirs.empty()) environment.data_dirs = {"/usr/local/share", "/usr/share"};
  utsname names{};
  if (uname(&names) == 0) environment.kernel_release = static_cast<const char*>(names.release);
  return environment;
}

Options OptionsFrom(const config::Settings& settings, Environment environment) {
  const config::Common& common = settings.common;
  Options options;
  options.naming = settings.plugin.device_id_strategy == config::DeviceIdStrategy::kIndex
                       ? Naming::kIndex
                       : Naming::kUuid;
  options.tegra_by_id = true;
  options.driver_root = common.driver_root;
  options.dev_root = common.dev_root;
  options.explicit_host_paths =
      CleanPath(common.driver_root_ctr_path) != CleanPath(common.driver_root);
  options.hook_path = settings.cdi.hook_path;
  options.disable_all_hooks = settings.cdi.disable_all_hooks;
  options.disabled_hooks = settings.cdi.disabled_hooks;
  options.features = settings.cdi.features;
  options.gds = settings.plugin.gds_enabled;
  options.mofed = settings.plugin.mofed_enabled;
  options.gdrcopy = settings.plugin.gdrcopy_enabled;
  options.imex_channels = settings.imex.channel_ids;
  options.imex_required = settings.imex.required;
  options.environment = std::move(environment);
  return options;
}

std::set<std::string> EnabledClasses(const Options& options) {
  std::set<std::string> classes = {std::string(kGpuClass)};
  if (!options.imex_channels.empty()) classes.emplace(kImexClass);
  if (options.gdrcopy) classes.emplace(kGdrCopyClass);
  if (options.gds) classes.emplace(kGdsClass);
  if (options.mofed) classes.emplace(kMofedClass);
  return classes;
}

}  // namespace ndp::cdi
