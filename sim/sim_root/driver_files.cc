#include "sim_root/driver_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <string_view>

#include "sim_root/elf.h"
#include "sim_root/files.h"

namespace ndp::sim_root {
namespace {

namespace fs = std::filesystem;

struct Library {
  std::string_view name;
  std::string_view soname;  // empty: its file name
  bool dev_link = false;    // a plain .so beside the SONAME's
};

// A 570 driver's libraries. Where the SONAME is the file name, no link leads to it.
constexpr Library kLibraries[] = {
    {"libcuda", "libcuda.so.1", true},
    {"libcudadebugger", "libcudadebugger.so.1"},
    {"libnvcuvid", "libnvcuvid.so.1", true},
    {"libnvidia-allocator", "libnvidia-allocator.so.1", true},
    {"libnvidia-cfg", "libnvidia-cfg.so.1", true},
    {"libnvidia-eglcore", ""},
    {"libnvidia-encode", "libnvidia-encode.so.1", true},
    {"libnvidia-fbc", "libnvidia-fbc.so.1", true},
    {"libnvidia-glcore", ""},
    {"libnvidia-glsi", ""},
    {"libnvidia-glvkspirv", ""},
    {"libnvidia-gpucomp", ""},
    {"libnvidia-ngx", "libnvidia-ngx.so.1"},
    {"libnvidia-nvvm", "libnvidia-nvvm.so.4", true},
    {"libnvidia-opencl", "libnvidia-opencl.so.1"},
    {"libnvidia-opticalflow", "libnvidia-opticalflow.so.1", true},
    {"libnvidia-pkcs11-openssl3", ""},
    {"libnvidia-ptxjitcompiler", "libnvidia-ptxjitcompiler.so.1", true},
    {"libnvidia-rtcore", ""},
    {"libnvidia-tls", ""},
    {"libnvoptix", "libnvoptix.so.1"},
    {"libEGL_nvidia", "libEGL_nvidia.so.0"},
    {"libGLESv1_CM_nvidia", "libGLESv1_CM_nvidia.so.1"},
    {"libGLESv2_nvidia", "libGLESv2_nvidia.so.2"},
    {"libGLX_nvidia", "libGLX_nvidia.so.0"},
};

// Where a layout has them, below the driver root.
struct Folders {
  const char* libraries;
  const char* programs;
  const char* firmware;
};

const Folders& FoldersOf(DriverLayout layout) {
  static constexpr Folders kPackages = {kLibraryFolder, "usr/bin", "lib/firmware"};
  static constexpr Folders kGke = {"lib64", "bin", "firmware"};
  return layout == DriverLayout::kGke ? kGke : kPackages;
}

// GKE's installer has what is in it at the top.
constexpr std::string_view kShare = "usr/share/";

struct TextFile {
  std::string_view path;
  std::string_view text;
};

constexpr TextFile kConfiguration[] = {
    {"etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n"},
    {"usr/share/vulkan/icd.d/nvidia_icd.json",
     "{\"file_format_version\": \"1.0.1\", \"ICD\": {\"library_path\": \"libGLX_nvidia.so.0\", "
     "\"api_version\": \"1.4.303\"}}\n"},
    {"usr/share/vulkan/implicit_layer.d/nvidia_layers.json",
     "{\"file_format_version\": \"1.0.0\"}\n"},
    {"usr/share/glvnd/egl_vendor.d/10_nvidia.json",
     "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": \"libEGL_nvidia.so.0\"}}\n"},
    {"usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json",
     "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": "
     "\"libnvidia-egl-wayland.so.1\"}}\n"},
    {"usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
     "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": "
     "\"libnvidia-egl-gbm.so.1\"}}\n"},
    {"usr/share/nvidia/nvoptix.bin", "simulated\n"},
};

constexpr std::string_view kBinaries[] = {"nvidia-smi",
                                          "nvidia-debugdump",
                                          "nvidia-persistenced",
                                          "nvidia-cuda-mps-control",
                                          "nvidia-cuda-mps-server",
                                          "nvidia-imex",
                                          "nvidia-imex-ctl"};

Status WriteShared(const fs::path& folder, std::string_view file, std::string_view soname) {
  return WriteFile(folder / file, MakeSharedObject(soname), 0755);
}

// Versioned names of other drivers, and the links of their version.
Status RemoveOtherVersions(const fs::path& folder, const std::string& version) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const auto so = name.find(".so.");
    if (so == std::string::npos || entry.is_symlink() || !name.starts_with("lib")) continue;
    const std::string suffix = name.substr(so + 4);
    // Only the driver's own scheme, 570.86.15: the EGL platforms are numbered apart.
    if (suffix != version && std::stoul("0" + suffix.substr(0, suffix.find('.'))) > 100) {
      NDP_TRY(Remove(entry.path()));
    }
  }
  return {};
}

Status WriteLibraries(const fs::path& folder, const std::string& version) {
  for (const Library& library : kLibraries) {
    const std::string file = fmt::format("{}.so.{}", library.name, version);
    NDP_TRY(WriteShared(folder, file, library.soname.empty() ? file : library.soname));
    if (library.soname.empty()) continue;
    NDP_TRY(WriteLink(folder / library.soname, file));
    if (library.dev_link) {
      NDP_TRY(WriteLink(folder / fmt::format("{}.so", library.name), library.soname));
    }
  }
  const std::string vdpau = "libvdpau_nvidia.so." + version;
  NDP_TRY(WriteShared(folder / "vdpau", vdpau, "libvdpau_nvidia.so.1"));
  NDP_TRY(WriteLink(folder / "vdpau/libvdpau_nvidia.so.1", vdpau));
  for (const auto& [file, soname] :
       {std::pair("libnvidia-egl-gbm.so.1.1.2", "libnvidia-egl-gbm.so.1"),
        std::pair("libnvidia-egl-wayland.so.1.1.18", "libnvidia-egl-wayland.so.1")}) {
    NDP_TRY(WriteShared(folder, file, soname));
    NDP_TRY(WriteLink(folder / soname, file));
  }
  return WriteLink(folder / "gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1");
}

Status WriteSocket(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (fs::exists(path)) return {};
  // A node alone: nobody listens. (Binding would limit the length of the folder's path.)
  if (mknod(path.c_str(), S_IFSOCK | 0666, 0) != 0) return WriteFile(path, "");
  return {};
}

}  // namespace

fs::path DriverRoot(const fs::path& machine, const sim_state::Control& control) {
  const std::string_view root = control.driver_root;
  return root.empty() ? machine : machine / root.substr(1);
}

fs::path DevRoot(const fs::path& machine, const sim_state::Control& control) {
  return control.driver_layout == DriverLayout::kGke ? machine : DriverRoot(machine, control);
}

fs::path InstalledNvml(const fs::path& root, const std::string& version, DriverLayout layout) {
  return root / FoldersOf(layout).libraries / ("libnvidia-ml.so." + version);
}

Status RemoveDriverFiles(const fs::path& root, DriverLayout layout) {
  const Folders& folders = FoldersOf(layout);
  for (const char* folder : {folders.libraries, folders.programs, folders.firmware}) {
    NDP_TRY(Remove(root / folder));
  }
  return {};
}

Status WriteDriverFiles(const fs::path& root, const std::string& version, const fs::path& nvml,
                        DriverLayout layout) {
  const Folders& folders = FoldersOf(layout);
  const fs::path folder = root / folders.libraries;
  NDP_TRY(const std::string library, ReadFile(nvml).Context("read the simulated library"));
  NDP_TRY(RemoveOtherVersions(folder, version));
  NDP_TRY(RemoveOtherVersions(folder / "vdpau", version));
  NDP_TRY(WriteLibraries(folder, version));
  NDP_TRY(WriteFile(InstalledNvml(root, version, layout), library, 0755));
  NDP_TRY(WriteLink(folder / "libnvidia-ml.so.1", "libnvidia-ml.so." + version));
  NDP_TRY(WriteLink(folder / "libnvidia-ml.so", "libnvidia-ml.so.1"));
  for (const TextFile& file : kConfiguration) {
    std::string_view path = file.path;
    if (layout == DriverLayout::kGke && path.starts_with(kShare)) path.remove_prefix(kShare.size());
    NDP_TRY(WriteFile(root / path, file.text));
  }
  for (const std::string_view name : kBinaries) {
    NDP_TRY(WriteFile(
        root / folders.programs / name,
        fmt::format("#!/bin/sh\necho \"{} {} (simulated by ndp-sim)\"\n", name, version), 0755));
  }
  const fs::path firmware = root / folders.firmware / "nvidia";
  NDP_TRY(Remove(firmware));
  for (const std::string_view name : {"gsp_ga10x.bin", "gsp_tu10x.bin"}) {
    NDP_TRY(WriteFile(firmware / version / name, "simulated\n"));
  }
  return WriteSocket(root / "run/nvidia-persistenced/socket");
}

// dlsym looks a name up by its hash, then compares it with the string table: a changed first letter
// makes that comparison fail. Names in this library begin with nvml, so none is another's tail.
Status SetSymbolMissing(const fs::path& library, const std::string& function, bool missing) {
  NDP_TRY(std::string image, ReadFile(library));
  std::string name = '\0' + function + '\0';
  std::string hidden = name;
  hidden[1] = '-';
  const std::string& from = missing ? name : hidden;
  const std::string& to = missing ? hidden : name;
  bool found = false;
  for (auto at = image.find(from); at != std::string::npos; at = image.find(from, at + 1)) {
    image.replace(at, from.size(), to);
    found = true;
  }
  if (!found) return {};
  return WriteFile(library, image, 0755);
}

Status WriteTegraFiles(const fs::path& root) {
  NDP_TRY(
      WriteFile(root / "etc/nv_tegra_release",
                "# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic, EABI: aarch64, "
                "DATE: Fri Sep 13 04:36:44 UTC 2024\n"));
  NDP_TRY(WriteFile(root / "sys/devices/soc0/family", "Tegra\n", 0444));
  NDP_TRY(WriteFile(root / "sys/devices/soc0/machine", "NVIDIA Jetson AGX Orin\n", 0444));
  const fs::path folder = "usr/lib/aarch64-linux-gnu/nvidia";
  NDP_TRY(WriteShared(root / folder, "libcuda.so.1.1", "libcuda.so.1"));
  NDP_TRY(WriteLink(root / folder / "libcuda.so.1", "libcuda.so.1.1"));
  NDP_TRY(WriteShared(root / folder, "libnvrm_gpu.so", "libnvrm_gpu.so"));
  NDP_TRY(WriteLink(root / "usr/lib/aarch64-linux-gnu/libcuda.so", "nvidia/libcuda.so.1"));
  NDP_TRY(WriteFile(root / "usr/share/glvnd/egl_vendor.d/10_nvidia.json", "{}\n"));
  const fs::path csv = root / "etc/nvidia-container-runtime/host-files-for-container.d";
  NDP_TRY(WriteFile(csv / "devices.csv",
                    "dev, /dev/nvhost-ctrl-gpu\ndev, /dev/nvhost-gpu\ndev, /dev/nvmap\n"));
  return WriteFile(
      csv / "drivers.csv",
      fmt::format("lib, /{0}/libcuda.so.1.1\nlib, /{0}/libnvrm_gpu.so\n"
                  "sym, /{0}/libcuda.so.1\nsym, /usr/lib/aarch64-linux-gnu/libcuda.so\n"
                  "dir, /usr/share/glvnd/egl_vendor.d\n",
                  folder.string()));
}

Status WriteWslFiles(const fs::path& root) {
  NDP_TRY(WriteShared(root / "usr/lib/wsl/lib", "libdxcore.so", "libdxcore.so"));
  const fs::path store = root / "usr/lib/wsl/drivers/nv_dispi.inf_amd64_0a1b2c3d4e5f6071";
  for (const std::string_view name :
       {"libcuda.so.1.1", "libcuda_loader.so", "libnvidia-ptxjitcompiler.so.1", "libnvidia-ml.so.1",
        "libnvidia-ml_loader.so", "libnvdxgdmal.so.1"}) {
    NDP_TRY(WriteShared(store, name, name));
  }
  NDP_TRY(WriteFile(store / "nvcubins.bin", "simulated\n"));
  return WriteFile(store / "nvidia-smi", "#!/bin/sh\necho nvidia-smi\n", 0755);
}

}  // namespace ndp::sim_root
