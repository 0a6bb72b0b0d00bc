// `ndp inventory`: what the driver and the host's files say of this node, as JSON. For people who
// wonder what the plugin sees, and for new profiles of the simulator. Makes driver calls and waits
// for them.
#include <fmt/format.h>

#include <cstdio>

#include "cmd/arguments.h"
#include "cmd/command.h"
#include "doc/json.h"
#include "health/examination_document.h"
#include "inventory/discover.h"
#include "inventory/links.h"
#include "inventory/platform.h"
#include "nvml/dl_driver.h"
#include "os/host_fs.h"

namespace ndp::cmd {
namespace {

doc::Value MigStatus(const inventory::MigDevice& mig) {
  doc::Value out = doc::Value::Map();
  out.Set("slot", mig.nvml.slot);
  out.Set("uuid", mig.nvml.uuid);
  out.Set("profile", mig.profile);
  out.Set("gpuInstance", mig.nvml.gpu_instance);
  out.Set("computeInstance", mig.nvml.compute_instance);
  if (mig.nvml.gpu_instance_profile) out.Set("gpuInstanceProfile", *mig.nvml.gpu_instance_profile);
  if (mig.nvml.attributes) {
    const nvml::MigAttributes& a = *mig.nvml.attributes;
    out.Set("memoryMiB", a.memory_mib);
    out.Set("multiprocessors", a.multiprocessors);
    out.Set("gpuInstanceSlices", a.gpu_instance_slices);
    out.Set("computeInstanceSlices", a.compute_instance_slices);
  }
  doc::Value& nodes = out.Set("deviceNodes", doc::Value::List());
  for (const std::string& node : mig.device_nodes) nodes.Append(node);
  if (!mig.trouble.empty()) out.Set("trouble", mig.trouble);
  return out;
}

doc::Value GpuDocument(nvml::Driver& driver, const inventory::Gpu& gpu,
                       const inventory::GpuLinks& links) {
  doc::Value out = doc::Value::Map();
  out.Set("index", gpu.index());
  out.Set("uuid", gpu.uuid());
  out.Set("pciBusId", gpu.pci_bus_id());
  out.Set("name", gpu.name());
  if (gpu.nvml.minor) out.Set("minor", *gpu.nvml.minor);
  if (gpu.nvml.memory_bytes) out.Set("memoryBytes", *gpu.nvml.memory_bytes);
  if (gpu.nvml.compute_capability) {
    out.Set("computeCapability", fmt::format("{}.{}", gpu.nvml.compute_capability->first,
                                             gpu.nvml.compute_capability->second));
  }
  if (gpu.nvml.brand) out.Set("brand", *gpu.nvml.brand);
  if (gpu.nvml.architecture) out.Set("architecture", *gpu.nvml.architecture);
  if (gpu.nvml.addressing_mode) out.Set("addressingMode", *gpu.nvml.addressing_mode);
  if (gpu.numa_node) out.Set("numaNode", *gpu.numa_node);
  if (gpu.nvml.mig_mode) {
    out.Set("migCurrent", gpu.nvml.mig_mode->current);
    out.Set("migPending", gpu.nvml.mig_mode->pending);
    out.Set("migSlots", gpu.nvml.mig_slots);
  }
  if (gpu.nvml.mig_failure) out.Set("migFailure", gpu.nvml.mig_failure->Message());
  doc::Value& migs = out.Set("mig", doc::Value::List());
  for (const inventory::MigDevice& mig : gpu.mig) migs.Append(MigStatus(mig));
  doc::Value& nvlinks = out.Set("nvlinks", doc::Value::List());
  for (const nvml::NvLink& link : links.nvlinks) {
    doc::Value entry = doc::Value::Map();
    entry.Set("link", link.link);
    entry.Set("end", static_cast<int>(link.end));
    entry.Set("remote", link.remote_pci_bus_id);
    nvlinks.Append(std::move(entry));
  }
  doc::Value& ancestors = out.Set("commonAncestors", doc::Value::List());
  for (const int level : links.ancestors) ancestors.Append(level);
  doc::Value& sampled = out.Set("health", doc::Value::Map());
  if (auto sample = driver.Sample(gpu.pci_bus_id())) {
    health::AddSample(sampled, *sample);
    doc::Value& failures = sampled.Set("failures", doc::Value::List());
    for (const nvml::Failure& failure : sample->failures) failures.Append(failure.Message());
  } else {
    sampled.Set("failure", sample.error().Message());
  }
  if (!gpu.trouble.empty()) out.Set("trouble", gpu.trouble);
  return out;
}

Result<doc::Value> Describe(const std::string& driver_root, const os::HostFs& host) {
  nvml::DlLoader nvml(driver_root);
  inventory::PlatformLoader loader(nvml, {.driver_root = driver_root, .host_root = host.root()});
  NDP_TRY(const std::shared_ptr<nvml::Driver> driver, loader.Open());
  NDP_TRY(const inventory::Scan scan, inventory::ReadScan(*driver));
  const inventory::Inventory inventory = Assemble(loader.PlatformOf(scan), scan, host);

  doc::Value out = doc::Value::Map();
  out.Set("platform", std::string(inventory::PlatformName(inventory.platform)));
  out.Set("library", driver->library().string());
  out.Set("driverVersion", inventory.driver.driver_version);
  out.Set("nvmlVersion", inventory.driver.nvml_version);
  out.Set("cudaVersion", inventory.driver.cuda_version);
  std::vector<inventory::LinkTarget> targets;
  for (const inventory::Gpu& gpu : inventory.gpus)
    targets.push_back({gpu.uuid(), gpu.pci_bus_id()});
  doc::Value& gpus = out.Set("gpus", doc::Value::List());
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    gpus.Append(GpuDocument(*driver, inventory.gpus[i], ReadGpuLinks(*driver, targets, i)));
  }
  doc::Value& broken = out.Set("unreadableGpus", doc::Value::List());
  for (const inventory::BrokenGpu& gpu : inventory.broken) broken.Append(gpu.reason);
  return out;
}

}  // namespace

int RunInventory(const std::string& name, const std::vector<std::string>& args) {
  Arguments arguments(name, "What the driver and the host's files say of this node, as JSON");
  std::string driver_root = "/";
  std::string host_root = "/";
  arguments.Path("--driver-root-ctr-path", driver_root, "where the driver root is seen [/]");
  arguments.Path("--host-root", host_root, "where the host's /proc and /sys are seen [/]");
  if (const auto status = arguments.Parse(args)) return *status;
  auto document = Describe(driver_root, os::HostFs(host_root));
  if (!document) {
    fmt::print(stderr, "{}: {}\n", name, document.error().message());
    return kFailed;
  }
  fmt::print("{}\n", doc::ToJson(*document, 2));
  return kOk;
}

}  // namespace ndp::cmd
