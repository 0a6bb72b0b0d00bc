// Machines the simulator can be, read from YAML: the profiles in sim/profiles (built in), or a file
// of the user's. Pure apart from reading that file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim_state/layout.h"

namespace ndp::sim_profile {

using sim_state::Platform;

struct GpuSpec {
  std::string name;
  std::uint64_t memory_mib = 0;
  std::uint32_t cc_major = 0;
  std::uint32_t cc_minor = 0;
  std::uint32_t architecture = 0;
  std::uint32_t brand = 14;  // NVIDIA, without the name of a family
  std::uint32_t pci_id = 0;
  std::uint32_t subsystem_id = 0;
  std::uint32_t pci_class = 0x030200;
  std::int32_t mig_model = -1;
  std::int32_t addressing_mode = 0;
  bool row_remapping = true;  // false: pages are retired instead
  std::array<std::int32_t, 4> thresholds = {-1, -1, -1, -1};
  sim_state::PciAddress pci;
  std::int32_t numa = -1;
  std::int32_t memory_numa = -1;
};

struct LinkPair {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t count = 1;
};

struct Profile {
  std::string name;
  std::string description;
  Platform platform = Platform::kNvml;
  std::string driver;       // version; empty: no driver
  std::string driver_root;  // on the machine; empty: "/"
  sim_state::DriverLayout driver_layout = sim_state::DriverLayout::kPackages;
  std::uint32_t cuda = 0;
  std::vector<GpuSpec> gpus;
  std::vector<std::int32_t> switch_groups;  // GPUs of one number share a PCIe switch; may be empty
  std::uint32_t nvswitch_links = 0;         // per GPU
  std::vector<LinkPair> link_pairs;
  std::optional<std::uint32_t> fabric_clique;
  std::uint32_t imex_channels = 0;
};

// Errors name the profile, the line and what would be right.
Result<Profile> ParseProfile(std::string_view name, std::string_view yaml);

// A built-in profile by name, or the file at that path where the text has a slash or ends in
// .yaml. kNotFound lists the names there are.
Result<Profile> LoadProfile(const std::string& name_or_path);

// Two or three numbers with dots between, the first of at least three digits: 570.86.15. It
// becomes part of file names.
bool IsDriverVersion(std::string_view text);

struct BuiltIn {
  std::string_view name;
  std::string_view yaml;
};
std::vector<BuiltIn> BuiltInProfiles();

}  // namespace ndp::sim_profile
