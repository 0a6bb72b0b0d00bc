#include "inventory/discover.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "inventory/mig_minors.h"
#include "inventory/mig_profile.h"

namespace ndp::inventory {
namespace {

bool IsDisplay(const std::optional<std::string>& name) {
  return name == "DGX Display" || name == "NVIDIA DGX Display";
}

// Negative and missing both mean none; 0 is a node.
std::optional<int> NumaNode(const os::HostFs& host, const std::string& pci_bus_id) {
  auto text = host.Read(fmt::format("/sys/bus/pci/devices/{}/numa_node", pci_bus_id));
  if (!text) return std::nullopt;
  const auto node = ParseSigned(Trim(*text));
  if (!node || *node < 0 || *node > 0xFFFF) return std::nullopt;
  return static_cast<int>(*node);
}

// The kernel module tells the minor too: an NVML that does not costs nobody a device.
std::optional<unsigned> MinorOf(const nvml::Gpu& gpu, const os::HostFs& host) {
  if (gpu.minor) return gpu.minor;
  constexpr std::string_view kKey = "Device Minor:";
  const auto text =
      host.Read(fmt::format("/proc/driver/nvidia/gpus/{}/information", gpu.pci_bus_id));
  if (!text) return std::nullopt;
  for (const std::string_view line : Split(*text, '\n')) {
    if (!line.starts_with(kKey)) continue;
    const auto minor = ParseUnsigned(Trim(line.substr(kKey.size())));
    if (minor && *minor <= 0xFFFFF) return static_cast<unsigned>(*minor);
  }
  return std::nullopt;
}

MigDevice Describe(const nvml::MigDevice& mig, const Gpu& gpu, const MigMinors& minors,
                   const std::string& minors_trouble) {
  MigDevice out{.nvml = mig,
                .profile = MigProfileName(mig, gpu.nvml.memory_bytes),
                .device_nodes = {},
                .trouble = {}};
  const auto why = [&](std::string text) {
    if (out.trouble.empty()) out.trouble = std::move(text);
  };
  if (out.profile.empty())
    why("its MIG profile cannot be told: the driver gives no attributes for it");
  if (!gpu.nvml.minor) {
    why(fmt::format("the minor number of its GPU {} is unknown", gpu.index()));
    return out;
  }
  if (!minors_trouble.empty()) {
    why(minors_trouble);
    return out;
  }
  const unsigned g = *gpu.nvml.minor;
  const auto gi = minors.GpuInstance(g, mig.gpu_instance);
  const auto ci = minors.ComputeInstance(g, mig.gpu_instance, mig.compute_instance);
  if (!gi) why(fmt::format("mig-minors has no entry gpu{}/gi{}/access", g, mig.gpu_instance));
  if (!ci) {
    why(fmt::format("mig-minors has no entry gpu{}/gi{}/ci{}/access", g, mig.gpu_instance,
                    mig.compute_instance));
  }
  if (gi && ci) out.device_nodes = {fmt::format("/dev/nvidia{}", g), CapNode(*gi), CapNode(*ci)};
  return out;
}

}  // namespace

std::string CapNode(unsigned minor) { return fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor); }

Result<Scan> ReadScan(nvml::Driver& driver) {
  Scan scan;
  auto info = driver.Info();
  if (!info) return info.error().ToError();
  scan.driver = *info;
  auto count = driver.DeviceCount();
  if (!count) return count.error().ToError();
  for (unsigned index = 0; index < *count; ++index) scan.gpus.push_back(driver.ReadGpu(index));
  return scan;
}

Inventory Assemble(Platform platform, const Scan& scan, const os::HostFs& host) {
  Inventory out;
  out.platform = platform;
  out.driver = scan.driver;
  std::string minors_trouble;
  if (auto minors = ReadMigMinors(host)) {
    out.mig_minors = *std::move(minors);
  } else {
    minors_trouble = "read MIG minors: " + minors.error().message();
  }
  for (std::size_t index = 0; index < scan.gpus.size(); ++index) {
    const auto& reply = scan.gpus[index];
    if (!reply) {
      out.broken.push_back({static_cast<unsigned>(index), reply.error().Message()});
      continue;
    }
    if (IsDisplay(reply->name)) continue;
    Gpu gpu{.nvml = *reply,
            .numa_node = NumaNode(host, reply->pci_bus_id),
            .device_nodes = {},
            .mig = {},
            .trouble = {}};
    gpu.nvml.minor = MinorOf(*reply, host);
    if (gpu.nvml.minor) gpu.device_nodes = {fmt::format("/dev/nvidia{}", *gpu.nvml.minor)};
    for (const nvml::MigDevice& mig : gpu.nvml.mig_devices) {
      gpu.mig.push_back(Describe(mig, gpu, out.mig_minors, minors_trouble));
    }
    out.gpus.push_back(std::move(gpu));
  }
  return out;
}

bool Gpu::Has(std::string_view uuid) const {
  return nvml.uuid == uuid || std::ranges::any_of(mig, [&](const MigDevice& device) {
           return device.nvml.uuid == uuid;
         });
}

const Gpu* Inventory::FindUuid(std::string_view uuid) const {
  for (const Gpu& gpu : gpus) {
    if (gpu.uuid() == uuid) return &gpu;
  }
  return nullptr;
}

const Gpu* Inventory::FindPci(std::string_view pci_bus_id) const {
  for (const Gpu& gpu : gpus) {
    if (gpu.pci_bus_id() == pci_bus_id) return &gpu;
  }
  return nullptr;
}

const Gpu* Inventory::FindIndex(unsigned index) const {
  for (const Gpu& gpu : gpus) {
    if (gpu.index() == index) return &gpu;
  }
  return nullptr;
}

}  // namespace ndp::inventory
