#include "node/change_signs.h"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"

namespace ndp::node {
namespace {

// Before all others, so that it is what is told: where a GPU goes its instances go as well.
constexpr const char* kGpusSign = "GPUs";
constexpr const char* kCapabilities = "/proc/driver/nvidia/capabilities";
constexpr const char* kGpus = "/proc/driver/nvidia/gpus";
constexpr const char* kMigMinors = "/proc/driver/nvidia-caps/mig-minors";

bool IsInstance(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size();
}

// "gpu0: gi1[ci0] gi2[ci0]; gpu1: …" for the instances that exist now.
std::string Instances(const os::HostFs& host) {
  std::string out;
  auto gpus = host.List(kCapabilities);
  if (!gpus) return out;
  for (const std::string& gpu : *gpus) {
    if (!IsInstance(gpu, "gpu")) continue;
    const std::string mig = fmt::format("{}/{}/mig", kCapabilities, gpu);
    auto instances = host.List(mig);
    if (!instances) continue;
    out += gpu + ":";
    for (const std::string& gi : *instances) {
      if (!IsInstance(gi, "gi")) continue;
      out += fmt::format(" {}[", gi);
      if (auto inner = host.List(fmt::format("{}/{}", mig, gi))) {
        for (const std::string& ci : *inner) {
          if (IsInstance(ci, "ci")) out += ci + " ";
        }
      }
      out += "]";
    }
    out += ";";
  }
  return out;
}

std::string DeviceNodes(const os::HostFs& devices) {
  std::string out;
  for (const char* folder : {"/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"}) {
    auto names = devices.List(folder);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (name.starts_with("nvidia") || name.starts_with("channel")) out += name + " ";
    }
  }
  return out;
}

// "0000:1b:00.0 … nvidia0 …": as the kernel module has them, and their nodes.
std::string Gpus(const os::HostFs& host, const os::HostFs& devices) {
  std::string out;
  if (const auto addresses = host.List(kGpus)) out = fmt::format("{} ", fmt::join(*addresses, " "));
  if (const auto names = devices.List("/dev")) {
    for (const std::string& name : *names) {
      if (IsGpuNode(name)) out += name + " ";
    }
  }
  return out;
}

}  // namespace

bool IsGpuNode(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && ParseUnsigned(name.substr(kPrefix.size())).has_value();
}

bool ChangeSigns::SameGpus(const ChangeSigns& other) const {
  const auto gpus = [](const ChangeSigns& signs) {
    const auto at = signs.by_name.find(kGpusSign);
    return at != signs.by_name.end() ? at->second : std::string();
  };
  return gpus(*this) == gpus(other);
}

std::string ChangeSigns::Difference(const ChangeSigns& other) const {
  for (const auto& [name, text] : by_name) {
    const auto at = other.by_name.find(name);
    if (at == other.by_name.end() || at->second != text) return name;
  }
  return by_name.size() == other.by_name.size() ? "" : "signs";
}

ChangeSigns ReadChangeSigns(const os::HostFs& host, const os::HostFs& devices,
                            const std::filesystem::path& library) {
  ChangeSigns signs;
  signs.by_name[kGpusSign] = Gpus(host, devices);
  signs.by_name["MIG instances"] = Instances(host);
  signs.by_name["MIG minors"] = host.Read(kMigMinors).value_or("");
  signs.by_name["device nodes"] = DeviceNodes(devices);
  struct stat file{};
  if (library.is_absolute()) {
    signs.by_name["driver library"] = ::stat(library.c_str(), &file) == 0
                                          ? fmt::format("{}:{}", file.st_dev, file.st_ino)
                                          : "gone";
  }
  signs.by_name["driver version"] = host.Read("/proc/driver/nvidia/version").value_or("");
  return signs;
}

}  // namespace ndp::node
