// The device nodes of a simulated machine: made where that is permitted, and always listed in
// `dev.list` at the root, one a line: path, type, major, minor, octal mode, gid.
//
//   /dev/nvidia0 c 195 0 0666 0
//
// os::HostFs reads the list where it finds no device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim_state/layout.h"

namespace ndp::sim_root {

inline constexpr unsigned kNvidiaMajor = 195;
inline constexpr unsigned kUvmMajor = 508;
inline constexpr unsigned kCapsMajor = 236;
inline constexpr unsigned kImexMajor = 237;
inline constexpr unsigned kNvSwitchMajor = 234;
inline constexpr unsigned kDrmMajor = 226;

struct Node {
  std::string path;  // from the root on: /dev/nvidia0
  unsigned major = 0;
  unsigned minor = 0;
  unsigned mode = 0666;
  unsigned gid = 0;
  bool operator==(const Node&) const = default;
};

// "0000:1b:00.0", as the kernel writes it.
std::string SysfsPciId(const sim_state::PciAddress& pci);

// Minor of the capability that opens a GPU instance; of one of its compute instances.
unsigned InstanceCapMinor(unsigned gpu_minor, unsigned gi_id);
unsigned ComputeCapMinor(unsigned gpu_minor, unsigned gi_id, unsigned ci_id);

// Every node of the machine as it is now, in bytewise order of their paths.
std::vector<Node> NodesOf(const sim_state::Control& control);
std::string FormatDevList(const std::vector<Node>& nodes);

// Makes what is missing, removes what is not in the list any more. Where nodes cannot be made
// (EPERM), the list alone has to do.
Status WriteNodes(const std::filesystem::path& root, const std::vector<Node>& nodes);

}  // namespace ndp::sim_root
