// The cheap signs that the driver's world has changed under an open session, which itself may go
// on returning what is gone: per-instance folders, mig-minors, device nodes, the library's file.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "os/host_fs.h"

namespace ndp::node {

struct ChangeSigns {
  // What was looked at → its text.
  std::map<std::string, std::string> by_name;

  // The name of the first sign that differs; empty where none does.
  std::string Difference(const ChangeSigns& other) const;
  // Both as ReadChangeSigns made them. Where not, an index may mean another GPU now.
  bool SameGpus(const ChangeSigns& other) const;
  bool operator==(const ChangeSigns&) const = default;
};

// "nvidia0", but not "nvidiactl".
bool IsGpuNode(std::string_view name);

// `host` shows /proc, `devices` the root whose /dev has the device nodes. A few milliseconds.
ChangeSigns ReadChangeSigns(const os::HostFs& host, const os::HostFs& devices,
                            const std::filesystem::path& library);

}  // namespace ndp::node
