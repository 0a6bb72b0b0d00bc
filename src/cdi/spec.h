// A CDI specification as values: the content of one file in /var/run/cdi. Fields are in the order
// in which they are written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ndp::cdi {

// Where something was read, for messages; 0: not from a file. Says nothing of what it is.
struct Line {
  int number = 0;
  bool operator==(const Line&) const { return true; }
};

struct DeviceNode {
  std::string path;       // in the container
  std::string host_path;  // empty: the same
  std::string type;       // "", b, c, u, p; we never write one
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::optional<std::uint32_t> file_mode;
  std::string permissions;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  Line line;
  bool operator==(const DeviceNode&) const = default;
};

struct NetDevice {  // read, never written
  std::string host_interface_name;
  std::string name;
  bool operator==(const NetDevice&) const = default;
};

struct Hook {
  std::string hook_name;
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::optional<std::int64_t> timeout;
  Line line;
  bool operator==(const Hook&) const = default;
};

struct Mount {
  std::string host_path;
  std::string container_path;
  std::vector<std::string> options;
  std::string type;
  Line line;
  bool operator==(const Mount&) const = default;
};

struct IntelRdt {  // read, never written
  std::string clos_id;
  std::string l3_cache_schema;
  std::string mem_bw_schema;
  std::vector<std::string> schemata;
  bool enable_monitoring = false;
  bool operator==(const IntelRdt&) const = default;
};

struct Edits {
  std::vector<std::string> env;  // "KEY=value"
  std::vector<DeviceNode> device_nodes;
  std::vector<NetDevice> net_devices;
  std::vector<Hook> hooks;
  std::vector<Mount> mounts;
  std::optional<IntelRdt> intel_rdt;
  std::vector<std::uint32_t> additional_gids;
  Line line;

  bool empty() const { return *this == Edits(); }
  void Append(const Edits& other);
  bool operator==(const Edits&) const = default;
};

struct Device {
  std::string name;
  std::map<std::string, std::string> annotations;
  Edits edits;
  Line line;
  bool operator==(const Device&) const = default;
};

struct Spec {
  std::string version;
  std::string kind;  // "vendor/class"
  std::map<std::string, std::string> annotations;
  std::vector<Device> devices;
  Edits edits;  // apply to every container that gets one of the devices

  const Device* Find(const std::string& name) const;
  bool operator==(const Spec&) const = default;
};

}  // namespace ndp::cdi
