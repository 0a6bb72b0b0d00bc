#include "sim_profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>

#include "base/text.h"
#include "doc/yaml.h"
#include "sim_state/mig_model.h"

namespace ndp::sim_profile {
namespace {

using doc::Value;

Error Refuse(const Value& value, const std::string& what) {
  return {Code::kInvalidArgument, "line " + std::to_string(value.line()) + ": " + what};
}

Status CheckKeys(const Value& map, std::string_view where,
                 std::initializer_list<std::string_view> known) {
  if (!map.is_map()) return Refuse(map, std::string(where) + " must be a mapping");
  for (const auto& entry : map.entries()) {
    if (std::ranges::find(known, entry.key) == known.end()) {
      return Error(Code::kInvalidArgument, "line " + std::to_string(entry.line) +
                                               ": unknown key \"" + entry.key + "\" in " +
                                               std::string(where));
    }
  }
  return {};
}

// Each reads a key of a map into `out`, and leaves that alone where the key is absent.
template <typename T>
Status ReadInt(const Value& map, const char* key, T& out) {
  const Value* value = map.Find(key);
  if (value == nullptr) return {};
  const auto number = value->AsInt();
  // fmt::format: GCC 12 inlines `string + text` here and warns of bounds that it has wrong.
  if (!number) return Refuse(*value, fmt::format("{} must be a whole number", key));
  out = static_cast<T>(*number);
  return {};
}

Status ReadText(const Value& map, const char* key, std::string& out) {
  const Value* value = map.Find(key);
  if (value == nullptr) return {};
  if (!value->is_scalar() || value->is_null()) {
    return Refuse(*value, std::string(key) + " must be a text");
  }
  out = value->Text();
  return {};
}

Status ReadNumbers(const Value& map, const char* key, std::vector<std::int32_t>& out) {
  const Value* value = map.Find(key);
  if (value == nullptr) return {};
  for (const Value& item : value->items()) {
    if (const auto number = item.AsInt()) out.push_back(static_cast<std::int32_t>(*number));
  }
  if (!value->is_list() || out.size() != value->items().size()) {
    return Refuse(*value, std::string(key) + " must be a list of numbers");
  }
  return {};
}

Status Need(const Value& map, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (map.Find(key) == nullptr) return Refuse(map, std::string("missing key ") + key);
  }
  return {};
}

// "12.8" → 12, 8.
Status ReadTwoNumbers(const Value& map, const char* key, std::uint32_t& first,
                      std::uint32_t& second) {
  std::string text;
  NDP_TRY(ReadText(map, key, text));
  if (text.empty()) return {};
  const auto parts = Split(text, '.');
  const auto major = ParseUnsigned(parts[0]);
  const auto minor = parts.size() == 2 ? ParseUnsigned(parts[1]) : std::nullopt;
  if (!major || !minor) {
    return Refuse(*map.Find(key), std::string(key) + " must be two numbers such as \"9.0\"");
  }
  first = static_cast<std::uint32_t>(*major);
  second = static_cast<std::uint32_t>(*minor);
  return {};
}

Result<sim_state::PciAddress> Pci(const Value& value) {
  const std::string text = value.Text();
  auto parts = Split(text, ':');
  if (parts.size() == 2) parts.insert(parts.begin(), "0");
  std::vector<std::uint32_t> numbers;
  for (const auto part : parts) {
    if (const auto number = ParseHex(part)) numbers.push_back(static_cast<std::uint32_t>(*number));
  }
  if (parts.size() != 3 || numbers.size() != 3) {
    return Refuse(value, "\"" + text + "\" must be a PCI address such as \"1B:00\" or \"8:01:00\"");
  }
  return sim_state::PciAddress{.domain = numbers[0], .bus = numbers[1], .device = numbers[2]};
}

Status ReadMigModel(const Value& map, GpuSpec& gpu) {
  std::string name;
  NDP_TRY(ReadText(map, "mig", name));
  if (name.empty()) return {};
  gpu.mig_model = sim_state::FindMigModel(name);
  if (gpu.mig_model >= 0) return {};
  std::vector<std::string> names;
  for (const auto& model : sim_state::MigModels()) names.emplace_back(model.name);
  return Refuse(*map.Find("mig"), "mig must be one of " + Join(names, ", "));
}

Status ReadThresholds(const Value& map, GpuSpec& gpu) {
  const Value* thresholds = map.Find("thresholds");
  if (thresholds == nullptr) return {};
  constexpr const char* kKinds[] = {"shutdown", "slowdown", "memoryMax", "gpuMax"};
  NDP_TRY(CheckKeys(*thresholds, "thresholds", {kKinds[0], kKinds[1], kKinds[2], kKinds[3]}));
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    NDP_TRY(ReadInt(*thresholds, kKinds[i], gpu.thresholds[i]));
  }
  return {};
}

// One entry of `gpus` stands for as many GPUs as it lists addresses.
Status ReadGpus(const Value& map, Profile& profile) {
  NDP_TRY(CheckKeys(map, "a gpu",
                    {"name", "memoryMiB", "computeCapability", "architecture", "brand", "pciId",
                     "subsystemId", "pciClass", "mig", "addressingMode", "rowRemapping",
                     "thresholds", "pci", "numa", "memoryNuma"}));
  NDP_TRY(Need(map, {"name", "memoryMiB", "computeCapability", "architecture", "pciId", "pci"}));
  GpuSpec gpu;
  NDP_TRY(ReadText(map, "name", gpu.name));
  NDP_TRY(ReadInt(map, "memoryMiB", gpu.memory_mib));
  NDP_TRY(ReadTwoNumbers(map, "computeCapability", gpu.cc_major, gpu.cc_minor));
  NDP_TRY(ReadInt(map, "architecture", gpu.architecture));
  NDP_TRY(ReadInt(map, "brand", gpu.brand));
  NDP_TRY(ReadInt(map, "pciId", gpu.pci_id));
  NDP_TRY(ReadInt(map, "subsystemId", gpu.subsystem_id));
  NDP_TRY(ReadInt(map, "pciClass", gpu.pci_class));
  NDP_TRY(ReadInt(map, "addressingMode", gpu.addressing_mode));
  if (const Value* remapping = map.Find("rowRemapping")) {
    if (!remapping->AsBool()) return Refuse(*remapping, "rowRemapping must be true or false");
    gpu.row_remapping = *remapping->AsBool();
  }
  NDP_TRY(ReadMigModel(map, gpu));
  NDP_TRY(ReadThresholds(map, gpu));
  std::vector<std::int32_t> numa;
  std::vector<std::int32_t> memory_numa;
  NDP_TRY(ReadNumbers(map, "numa", numa));
  NDP_TRY(ReadNumbers(map, "memoryNuma", memory_numa));
  const Value& pci = *map.Find("pci");
  if (pci.items().empty()) return Refuse(pci, "pci must list one address per GPU");
  for (std::size_t i = 0; i < pci.items().size(); ++i) {
    NDP_TRY(gpu.pci, Pci(pci.items()[i]));
    gpu.numa = i < numa.size() ? numa[i] : -1;
    gpu.memory_numa = i < memory_numa.size() ? memory_numa[i] : -1;
    profile.gpus.push_back(gpu);
  }
  if (profile.gpus.size() > sim_state::kMaxGpus) {
    return Refuse(pci, "more than " + std::to_string(sim_state::kMaxGpus) + " GPUs");
  }
  return {};
}

Status ReadLinks(const Value& map, Profile& profile) {
  NDP_TRY(CheckKeys(map, "links", {"nvswitch", "pairs"}));
  NDP_TRY(ReadInt(map, "nvswitch", profile.nvswitch_links));
  if (profile.nvswitch_links > sim_state::kMaxLinks) {
    return Refuse(map, "at most " + std::to_string(sim_state::kMaxLinks) + " links a GPU");
  }
  const Value* pairs = map.Find("pairs");
  if (pairs == nullptr) return {};
  for (const Value& pair : pairs->items()) {
    std::vector<std::uint32_t> numbers;
    for (const Value& item : pair.items()) {
      if (const auto number = item.AsInt()) numbers.push_back(static_cast<std::uint32_t>(*number));
    }
    if (numbers.size() != 3 || numbers[0] == numbers[1] || numbers[0] >= profile.gpus.size() ||
        numbers[1] >= profile.gpus.size()) {
      return Refuse(pair, "a pair is [GPU, other GPU, number of links]");
    }
    profile.link_pairs.push_back({.a = numbers[0], .b = numbers[1], .count = numbers[2]});
  }
  return {};
}

Status ReadPlatform(const Value& root, Profile& profile) {
  std::string text = "nvml";
  NDP_TRY(ReadText(root, "platform", text));
  if (text == "nvml") {
    profile.platform = Platform::kNvml;
  } else if (text == "tegra") {
    profile.platform = Platform::kTegra;
  } else if (text == "wsl") {
    profile.platform = Platform::kWsl;
  } else if (text == "none") {
    profile.platform = Platform::kNone;
  } else {
    return Refuse(*root.Find("platform"), "platform must be nvml, tegra, wsl or none");
  }
  return {};
}

Status ReadDriverRoot(const Value& root, Profile& profile) {
  NDP_TRY(ReadText(root, "driverRoot", profile.driver_root));
  const bool inside = profile.driver_root.starts_with('/') &&
                      profile.driver_root.find("..") == std::string::npos &&
                      profile.driver_root.size() < sizeof(sim_state::Control::driver_root);
  if (!profile.driver_root.empty() && !inside) {
    return Refuse(*root.Find("driverRoot"), "driverRoot must be a path such as /run/nvidia/driver");
  }
  std::string layout = "packages";
  NDP_TRY(ReadText(root, "driverLayout", layout));
  if (layout != "packages" && layout != "gke") {
    return Refuse(*root.Find("driverLayout"), "driverLayout must be packages or gke");
  }
  profile.driver_layout =
      layout == "gke" ? sim_state::DriverLayout::kGke : sim_state::DriverLayout::kPackages;
  return {};
}

Status Read(const Value& root, Profile& profile) {
  NDP_TRY(CheckKeys(root, "a profile",
                    {"description", "platform", "driver", "driverRoot", "driverLayout", "cuda",
                     "gpus", "switchGroups", "links", "fabric", "imexChannels"}));
  NDP_TRY(ReadText(root, "description", profile.description));
  NDP_TRY(ReadPlatform(root, profile));
  NDP_TRY(ReadText(root, "driver", profile.driver));
  NDP_TRY(ReadDriverRoot(root, profile));
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  NDP_TRY(ReadTwoNumbers(root, "cuda", major, minor));
  profile.cuda = major * 1000 + minor * 10;
  NDP_TRY(Need(root, {"gpus"}));
  for (const Value& gpu : root.Find("gpus")->items()) NDP_TRY(ReadGpus(gpu, profile));
  NDP_TRY(ReadNumbers(root, "switchGroups", profile.switch_groups));
  if (const Value* links = root.Find("links")) NDP_TRY(ReadLinks(*links, profile));
  NDP_TRY(ReadInt(root, "imexChannels", profile.imex_channels));
  if (const Value* fabric = root.Find("fabric")) {
    NDP_TRY(CheckKeys(*fabric, "fabric", {"clique"}));
    std::uint32_t clique = 0;
    NDP_TRY(ReadInt(*fabric, "clique", clique));
    profile.fabric_clique = clique;
  }
  // A Tegra or WSL system with GPUs listed has NVML as well.
  if (profile.platform == Platform::kNvml || !profile.gpus.empty()) {
    NDP_TRY(Need(root, {"driver"}));
    if (!IsDriverVersion(profile.driver)) {
      return Refuse(*root.Find("driver"), "driver must be a version such as 570.86.15");
    }
  }
  return {};
}

}  // namespace

bool IsDriverVersion(std::string_view text) {
  const auto parts = Split(text, '.');
  return (parts.size() == 2 || parts.size() == 3) && parts[0].size() >= 3 &&
         std::ranges::all_of(parts,
                             [](std::string_view part) { return ParseUnsigned(part).has_value(); });
}

Result<Profile> ParseProfile(std::string_view name, std::string_view yaml) {
  const std::string context = "profile " + std::string(name);
  NDP_TRY(const Value root, doc::ParseYaml(yaml).Context(context));
  Profile profile;
  profile.name = name;
  NDP_TRY(Read(root, profile).Context(context));
  return profile;
}

Result<Profile> LoadProfile(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".yaml")) {
    const std::string context = name_or_path + ": cannot be read as a profile";
    std::error_code error;
    if (std::filesystem::is_directory(name_or_path, error)) {
      return ErrnoError(EISDIR, context);
    }
    errno = 0;
    std::ifstream file(name_or_path, std::ios::binary);
    if (!file) return ErrnoError(errno, context);
    std::ostringstream text;
    text << file.rdbuf();
    return ParseProfile(name_or_path, text.str());
  }
  std::vector<std::string> names;
  for (const BuiltIn& built_in : BuiltInProfiles()) {
    if (built_in.name == name_or_path) return ParseProfile(built_in.name, built_in.yaml);
    names.emplace_back(built_in.name);
  }
  return Error(Code::kNotFound, "no profile \"" + name_or_path + "\"; there are " +
                                    Join(names, ", ") + ", or the path of a .yaml file");
}

}  // namespace ndp::sim_profile
