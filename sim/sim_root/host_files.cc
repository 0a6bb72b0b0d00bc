#include "sim_root/host_files.h"

#include <fmt/format.h>

#include <set>

#include "sim_root/device_nodes.h"
#include "sim_root/driver_files.h"
#include "sim_root/files.h"

namespace ndp::sim_root {
namespace {

namespace fs = std::filesystem;
using sim_state::Control;
using sim_state::Gpu;

constexpr unsigned kInstanceIds = 15;  // GPU instance ids go from 0 to 14
constexpr unsigned kComputeIds = 8;

std::string VersionText(const Control& control) {
  return fmt::format(
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed Jan 15 22:14:38 UTC 2025\n"
      "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
      control.driver_version);
}

std::string CapText(unsigned minor, unsigned mode) {
  return fmt::format("DeviceFileMinor: {}\nDeviceFileMode: {}\nDeviceFileModify: 1\n", minor, mode);
}

std::string Information(const Gpu& gpu, const Control& control) {
  return fmt::format(
      "Model: \t\t {}\nIRQ:   \t\t {}\nGPU UUID: \t {}\nVideo BIOS: \t 96.00.74.00.01\n"
      "Bus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
      "Bus Location: \t {}\nDevice Minor: \t {}\nGPU Firmware: \t {}\nGPU Excluded:\t No\n",
      gpu.name, 120 + gpu.minor, gpu.uuid, SysfsPciId(gpu.pci), gpu.minor, control.driver_version);
}

// Entries of a folder that are not among `keep`.
Status RemoveOthers(const fs::path& folder, const std::set<std::string>& keep) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!keep.contains(entry.path().filename().string())) NDP_TRY(Remove(entry.path()));
  }
  return {};
}

// /proc/driver/nvidia/capabilities: one folder per instance that exists, which is the cheapest sign
// of a re-partition there is.
Status WriteCapabilities(const fs::path& caps, const Control& control) {
  NDP_TRY(WriteFile(caps / "mig/config", CapText(1, 0400), 0444));
  NDP_TRY(WriteFile(caps / "mig/monitor", CapText(2, 0444), 0444));
  std::set<std::string> gpus = {"mig"};
  for (unsigned i = 0; i < control.gpu_count; ++i) {
    const Gpu& gpu = control.gpus[control.order[i]];
    if (gpu.mig_model < 0) continue;
    const std::string name = fmt::format("gpu{}", gpu.minor);
    gpus.insert(name);
    const fs::path folder = caps / name / "mig";
    std::error_code error;
    fs::create_directories(folder, error);
    std::set<std::string> instances;
    for (const auto& instance : gpu.mig.instances) {
      if (instance.used == 0) continue;
      const std::string gi = fmt::format("gi{}", instance.id);
      instances.insert(gi);
      const unsigned minor = InstanceCapMinor(gpu.minor, instance.id);
      NDP_TRY(WriteFile(folder / gi / "access", CapText(minor, 0444), 0444));
      std::set<std::string> inside = {"access"};
      for (const auto& device : gpu.mig.devices) {
        if (device.used == 0 || device.gi_id != instance.id) continue;
        const std::string ci = fmt::format("ci{}", device.ci_id);
        inside.insert(ci);
        NDP_TRY(WriteFile(folder / gi / ci / "access",
                          CapText(ComputeCapMinor(gpu.minor, instance.id, device.ci_id), 0444),
                          0444));
      }
      NDP_TRY(RemoveOthers(folder / gi, inside));
    }
    NDP_TRY(RemoveOthers(folder, instances));
  }
  return RemoveOthers(caps, gpus);
}

// The first 256 bytes of a GPU's PCI configuration space.
std::string PciConfig(const Gpu& gpu) {
  std::string config(256, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) config[at + i] = static_cast<char>(value >> (8 * i));
  };
  put(0x00, gpu.pci_id & 0xFFFFU, 2);
  put(0x02, gpu.pci_id >> 16U, 2);
  put(0x04, 0x0406, 2);  // command: memory, bus master, no legacy interrupts
  put(0x06, 0x0010, 2);  // status: has a capability list
  put(0x08, 0xA1, 1);
  put(0x09, gpu.pci_class, 3);
  put(0x2C, gpu.pci_subsystem_id & 0xFFFFU, 2);
  put(0x2E, gpu.pci_subsystem_id >> 16U, 2);
  put(0x34, 0x60, 1);    // first capability
  put(0x60, 0x6801, 2);  // power management, next at 0x68
  put(0x68, 0x7805, 2);  // MSI, next at 0x78
  put(0x78, 0x0010, 2);  // PCI Express, the last
  return config;
}

Status WritePciDevice(const fs::path& devices, const Gpu& gpu) {
  const fs::path folder = devices / SysfsPciId(gpu.pci);
  NDP_TRY(WriteFile(folder / "vendor", fmt::format("0x{:04x}\n", gpu.pci_id & 0xFFFFU), 0444));
  NDP_TRY(WriteFile(folder / "device", fmt::format("0x{:04x}\n", gpu.pci_id >> 16U), 0444));
  NDP_TRY(WriteFile(folder / "class", fmt::format("0x{:06x}\n", gpu.pci_class), 0444));
  NDP_TRY(WriteFile(folder / "numa_node", fmt::format("{}\n", gpu.numa_node), 0444));
  NDP_TRY(WriteFile(folder / "config", PciConfig(gpu)));
  NDP_TRY(WriteFile(folder / "enable", "1\n"));
  for (const std::string& name :
       {fmt::format("card{}", gpu.minor + 1), fmt::format("renderD{}", gpu.minor + 128)}) {
    const unsigned minor = name.starts_with("card") ? gpu.minor + 1 : gpu.minor + 128;
    NDP_TRY(
        WriteFile(folder / "drm" / name / "dev", fmt::format("{}:{}\n", kDrmMajor, minor), 0444));
  }
  return WriteLink(folder / "driver", "../../../../bus/pci/drivers/nvidia");
}

Status WritePci(const fs::path& root, const Control& control) {
  const fs::path devices = root / "sys/bus/pci/devices";
  const fs::path by_path = DevRoot(root, control) / "dev/dri/by-path";
  std::error_code error;
  fs::create_directories(devices, error);
  std::set<std::string> ids;
  std::set<std::string> links;
  for (unsigned i = 0; i < control.gpu_count; ++i) {
    const Gpu& gpu = control.gpus[control.order[i]];
    const std::string id = SysfsPciId(gpu.pci);
    ids.insert(id);
    NDP_TRY(WritePciDevice(devices, gpu));
    if (control.driver_present == 0) continue;
    const std::string card = fmt::format("pci-{}-card", id);
    const std::string render = fmt::format("pci-{}-render", id);
    links.insert({card, render});
    NDP_TRY(WriteLink(by_path / card, fmt::format("../card{}", gpu.minor + 1)));
    NDP_TRY(WriteLink(by_path / render, fmt::format("../renderD{}", gpu.minor + 128)));
  }
  NDP_TRY(RemoveOthers(by_path, links));
  return RemoveOthers(devices, ids);
}

Status WriteDriverProc(const fs::path& root, const Control& control) {
  const fs::path proc = root / "proc/driver/nvidia";
  if (control.driver_present == 0) {
    NDP_TRY(Remove(proc));
    NDP_TRY(Remove(root / "proc/driver/nvidia-caps"));
    return Remove(root / "sys/module/nvidia");
  }
  NDP_TRY(WriteFile(proc / "version", VersionText(control), 0444));
  NDP_TRY(WriteFile(proc / "params",
                    "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\n"
                    "DeviceFileGID: 0\nDeviceFileMode: 438\nEnableMSI: 1\n",
                    0444));
  std::set<std::string> ids;
  for (unsigned i = 0; i < control.gpu_count; ++i) {
    const Gpu& gpu = control.gpus[control.order[i]];
    ids.insert(SysfsPciId(gpu.pci));
    NDP_TRY(WriteFile(proc / "gpus" / SysfsPciId(gpu.pci) / "information",
                      Information(gpu, control), 0444));
  }
  NDP_TRY(RemoveOthers(proc / "gpus", ids));
  NDP_TRY(WriteCapabilities(proc / "capabilities", control));
  NDP_TRY(WriteFile(root / "proc/driver/nvidia-caps/mig-minors", FormatMigMinors(control), 0444));
  if (fs::exists(root / "sys/module/nvidia")) return {};
  return RemakeModuleFolder(root, control);
}

}  // namespace

std::string FormatMigMinors(const Control& control) {
  std::string text = "config 1\nmonitor 2\n";
  for (unsigned i = 0; i < control.gpu_count; ++i) {
    const Gpu& gpu = control.gpus[control.order[i]];
    if (gpu.mig_model < 0) continue;
    for (unsigned gi = 0; gi < kInstanceIds; ++gi) {
      text += fmt::format("gpu{}/gi{}/access {}\n", gpu.minor, gi, InstanceCapMinor(gpu.minor, gi));
      for (unsigned ci = 0; ci < kComputeIds; ++ci) {
        text += fmt::format("gpu{}/gi{}/ci{}/access {}\n", gpu.minor, gi, ci,
                            ComputeCapMinor(gpu.minor, gi, ci));
      }
    }
  }
  return text;
}

Status WriteBootId(const fs::path& root, const std::string& boot_id) {
  return WriteFile(root / "proc/sys/kernel/random/boot_id", boot_id + "\n", 0444);
}

Status RemakeModuleFolder(const fs::path& root, const Control& control) {
  const fs::path folder = root / "sys/module/nvidia";
  NDP_TRY(Remove(folder));
  NDP_TRY(WriteFile(folder / "version", std::string(control.driver_version) + "\n", 0444));
  NDP_TRY(WriteFile(folder / "initstate", "live\n", 0444));
  return WriteFile(folder / "refcnt", "3\n", 0444);
}

Status WriteHostFiles(const fs::path& root, const Control& control) {
  NDP_TRY(WritePci(root, control));
  NDP_TRY(WriteDriverProc(root, control));
  std::string majors;
  if (control.driver_present != 0) {
    majors = fmt::format(
        "{} nvidia\n{} nvidia-modeset\n{} nvidia-nvswitch\n{} nvidia-caps\n"
        "{} nvidia-caps-imex-channels\n{} nvidia-uvm\n",
        kNvidiaMajor, kNvidiaMajor, kNvSwitchMajor, kCapsMajor, kImexMajor, kUvmMajor);
  }
  return WriteFile(root / "proc/devices",
                   "Character devices:\n  1 mem\n  5 /dev/tty\n 10 misc\n226 drm\n" + majors +
                       "\nBlock devices:\n259 blkext\n",
                   0444);
}

}  // namespace ndp::sim_root
