// Machines for tests of CDI specifications: their files, and the inventory that a scan of them
// would give.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "inventory/inventory.h"
#include "testing/fake_node.h"

namespace ndp {

struct CdiNode {
  FakeNode files;
  inventory::Inventory inventory;
};

inline inventory::Gpu MakeGpu(unsigned index, std::string uuid, std::string bus_id,
                              std::string name) {
  inventory::Gpu gpu;
  gpu.nvml.index = index;
  gpu.nvml.minor = index;
  gpu.nvml.uuid = std::move(uuid);
  gpu.nvml.pci_bus_id = std::move(bus_id);
  gpu.nvml.name = std::move(name);
  gpu.device_nodes = {fmt::format("/dev/nvidia{}", index)};
  return gpu;
}

inline void AddMig(inventory::Gpu& gpu, unsigned slot, std::string uuid, unsigned gi_cap,
                   unsigned ci_cap) {
  gpu.nvml.mig_mode = nvml::MigMode{.current = true, .pending = true};
  inventory::MigDevice mig;
  mig.nvml.slot = slot;
  mig.nvml.uuid = std::move(uuid);
  mig.nvml.gpu_instance = slot + 1;
  mig.nvml.gpu_instance_profile = 2;  // 3g
  mig.profile = "3g.20gb";
  mig.device_nodes = {gpu.device_nodes.front(),
                      fmt::format("/dev/nvidia-caps/nvidia-cap{}", gi_cap),
                      fmt::format("/dev/nvidia-caps/nvidia-cap{}", ci_cap)};
  gpu.mig.push_back(std::move(mig));
}

// The control nodes and those of `gpus` GPUs.
inline void AddNvidiaNodes(FakeNode& files, unsigned gpus) {
  for (unsigned gpu = 0; gpu < gpus; ++gpu)
    files.Device(fmt::format("/dev/nvidia{}", gpu), 195, gpu);
  files.Device("/dev/nvidiactl", 195, 255);
  files.Device("/dev/nvidia-modeset", 195, 254);
  files.Device("/dev/nvidia-uvm", 508, 0);
  files.Device("/dev/nvidia-uvm-tools", 508, 1);
}

// A driver as its installer puts it on Debian: libraries, configuration, firmware, programs.
inline void AddDriver(const FakeNode& files, std::string_view version) {
  const std::string folder = "/usr/lib/x86_64-linux-gnu";
  const auto library = [&](std::string_view name, std::string_view suffix) {
    files.Library(folder, fmt::format("{}.so.{}", name, version),
                  fmt::format("{}.so.{}", name, suffix));
  };
  library("libGLX_nvidia", "0");
  library("libcuda", "1");
  library("libnvidia-allocator", "1");
  library("libnvidia-gpucomp", version);
  library("libnvidia-ml", "1");
  library("libnvidia-nvvm", "4");
  library("libnvidia-opencl", "1");
  library("libnvidia-ptxjitcompiler", "1");
  files.Library(folder + "/vdpau", fmt::format("libvdpau_nvidia.so.{}", version),
                "libvdpau_nvidia.so.1");
  files.Link(folder + "/libcuda.so", "libcuda.so.1");
  files.Link(folder + "/libnvidia-ml.so", "libnvidia-ml.so.1");
  files.Library(folder, "libnvidia-egl-gbm.so.1.1.2", "libnvidia-egl-gbm.so.1");
  files.File("/usr/share/glvnd/egl_vendor.d/10_nvidia.json");
  files.File("/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json");
  files.File("/usr/share/vulkan/icd.d/nvidia_icd.json");
  files.File("/etc/OpenCL/vendors/nvidia.icd");
  files.File(fmt::format("/lib/firmware/nvidia/{}/gsp_ga10x.bin", version));
  files.File(fmt::format("/lib/firmware/nvidia/{}/gsp_tu10x.bin", version));
  files.File("/run/nvidia-persistenced/socket");
  for (std::string_view program : {"nvidia-smi", "nvidia-debugdump", "nvidia-persistenced",
                                   "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"}) {
    files.Program(fmt::format("/usr/bin/{}", program));
  }
}

// Two A100 of which the second is cut in two; with a display's nodes.
inline void FillA100Mig(CdiNode& node) {
  node.inventory.platform = inventory::Platform::kNvml;
  node.inventory.driver = {.driver_version = "570.86.15", .cuda_version = 12080};
  node.inventory.gpus = {MakeGpu(0, "GPU-3f1c6a52-7d0e-4b9b-9a61-5c2e8d4f7a10", "0000:07:00.0",
                                 "NVIDIA A100-SXM4-40GB"),
                         MakeGpu(1, "GPU-8a5e1d3c-2b4f-4c6d-8e9f-0a1b2c3d4e5f", "0000:0b:00.0",
                                 "NVIDIA A100-SXM4-40GB")};
  AddMig(node.inventory.gpus[1], 0, "MIG-0b7e2c1d-5a84-5f63-8e9d-1c3a6b5f2e47", 147, 148);
  AddMig(node.inventory.gpus[1], 1, "MIG-c84d91e6-2f07-5b1a-a3c5-7e60d2b9f158", 156, 157);
  AddNvidiaNodes(node.files, 2);
  for (unsigned cap : {1U, 2U, 147U, 148U, 156U, 157U}) {
    node.files.Device(fmt::format("/dev/nvidia-caps/nvidia-cap{}", cap), 236, cap, 0444);
  }
  node.files.Drm("0000:07:00.0", 1);
  node.files.Drm("0000:0b:00.0", 2);
  AddDriver(node.files, "570.86.15");
}

// Eight H100 without a display.
inline void FillEightH100(CdiNode& node) {
  node.inventory.platform = inventory::Platform::kNvml;
  node.inventory.driver = {.driver_version = "550.54.15", .cuda_version = 12040};
  for (unsigned i = 0; i < 8; ++i) {
    node.inventory.gpus.push_back(
        MakeGpu(i, fmt::format("GPU-0000000{}-1111-2222-3333-444444444444", i),
                fmt::format("0000:{:02x}:00.0", 0x1b + 0x10 * i), "NVIDIA H100 80GB HBM3"));
  }
  AddNvidiaNodes(node.files, 8);
  AddDriver(node.files, "550.54.15");
}

inline void FillTegra(CdiNode& node) {
  node.inventory.platform = inventory::Platform::kTegra;
  FakeNode& files = node.files;
  files.File("/etc/nv_tegra_release", "# R36 (release), REVISION: 4.0\n");
  const std::string csv = "/etc/nvidia-container-runtime/host-files-for-container.d/";
  files.File(
      csv + "devices.csv",
      "dev, /dev/nvhost-ctrl-gpu\ndev, /dev/nvmap\ndev, /dev/dri/card*\ndev, /dev/nothing\n");
  files.File(csv + "drivers.csv",
             "lib, /usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1\n"
             "sym, /usr/lib/aarch64-linux-gnu/nvidia/libcuda.so\n"
             "sym, /usr/lib/aarch64-linux-gnu/libcuda.so\n"
             "dir, /usr/share/vulkan\nnonsense\nlib, /usr/lib/absent.so\n");
  files.Device("/dev/nvhost-ctrl-gpu", 505, 0, 0660, 44);
  files.Device("/dev/nvmap", 10, 55, 0660, 44);
  files.Device("/dev/dri/card0", 226, 0, 0660, 44);
  files.Library("/usr/lib/aarch64-linux-gnu/nvidia", "libcuda.so.1.1", "libcuda.so.1");
  files.Link("/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so", "libcuda.so.1.1");
  files.Link("/usr/lib/aarch64-linux-gnu/libcuda.so", "nvidia/libcuda.so");
  files.Folder("/usr/share/vulkan");
}

inline void FillWsl(CdiNode& node) {
  node.inventory.platform = inventory::Platform::kWsl;
  FakeNode& files = node.files;
  files.Device("/dev/dxg", 10, 127);
  files.File("/usr/lib/wsl/lib/libdxcore.so");
  files.File("/usr/lib/wsl/drivers/iigd_dch.inf_amd64_1/igd.bin");
  const std::string store = "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_2/";
  for (std::string_view name :
       {"libcuda.so.1.1", "libcuda_loader.so", "libnvidia-ptxjitcompiler.so.1", "libnvidia-ml.so.1",
        "libnvidia-ml_loader.so", "libnvdxgdmal.so.1", "nvcubins.bin", "libnvwgf2umx.so",
        "nvdlppx.bin", "nvoptix.dll", "readme.txt"}) {
    files.File(store + std::string(name));
  }
  files.Program(store + "nvidia-smi");
}

}  // namespace ndp
