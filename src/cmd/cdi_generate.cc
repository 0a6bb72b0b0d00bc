#include "cmd/cdi_generate.h"

#include <fmt/format.h>

#include "base/path.h"
#include "config/resolve.h"
#include "inventory/discover.h"
#include "inventory/platform.h"
#include "nvml/dl_driver.h"
#include "os/host_fs.h"

namespace ndp::cmd {
namespace {

Result<inventory::Inventory> ScanMachine(const os::HostFs& driver_root, const os::HostFs& host) {
  nvml::DlLoader nvml(driver_root.root());
  inventory::PlatformLoader loader(nvml,
                                   {.driver_root = driver_root.root(), .host_root = host.root()});
  NDP_TRY(const std::shared_ptr<nvml::Driver> driver, loader.Open());
  NDP_TRY(const inventory::Scan scan, inventory::ReadScan(*driver));
  return inventory::Assemble(loader.PlatformOf(scan), scan, host);
}

}  // namespace

Result<cdi::Built> GenerateSpec(GenerateOptions options) {
  cdi::Options& out = options.cdi;
  out.dev_root = out.dev_root.empty() ? out.driver_root : config::DevRootOf(out.dev_root);
  if (options.driver_root.empty()) options.driver_root = out.driver_root;
  out.explicit_host_paths = CleanPath(options.driver_root) != CleanPath(out.driver_root);
  for (const std::string& hook : options.disabled_hooks) {
    if (hook == "all") out.disable_all_hooks = true;
    out.disabled_hooks.insert(hook);
  }
  out.all_device = !options.no_all_device;
  out.environment = cdi::ProcessEnvironment();
  const os::HostFs driver_root(options.driver_root);
  const os::HostFs host(options.host_root);
  NDP_TRY(const inventory::Inventory inventory, ScanMachine(driver_root, host));
  cdi::Built built = cdi::Build(out, inventory, driver_root, host);
  // That a GPU in MIG mode is represented by its MIG devices is no trouble here.
  for (const inventory::Gpu& gpu : inventory.gpus) {
    if (gpu.mig_enabled()) built.troubles.erase(gpu.uuid());
  }
  for (const inventory::BrokenGpu& gpu : inventory.broken) {
    built.warnings.push_back(fmt::format("GPU {} is left out: {}", gpu.index, gpu.reason));
  }
  return built;
}

}  // namespace ndp::cmd
