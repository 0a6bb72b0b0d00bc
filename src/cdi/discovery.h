// What one pass of discovery works with, and what it has to say. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cdi/driver_root.h"
#include "cdi/options.h"
#include "cdi/spec.h"
#include "os/host_fs.h"

namespace ndp::cdi {

class Discovery {
 public:
  // The file systems must outlive it. Device nodes are looked for in the driver root where that
  // has a /dev, else on the host.
  Discovery(const Options& options, const os::HostFs& driver, const os::HostFs& host)
      : options_(options),
        driver_(driver),
        host_(host),
        devices_(driver_.IsDirectory("/dev") ? driver : host) {}

  const Options& options() const { return options_; }
  const DriverRoot& driver() const { return driver_; }
  const os::HostFs& host() const { return host_; }        // /sys and /proc
  const os::HostFs& devices() const { return devices_; }  // /dev

  void Warn(std::string text) { warnings_.push_back(std::move(text)); }
  // Each once; a root full of rubbish must not fill the log.
  std::vector<std::string> TakeWarnings();

 private:
  const Options& options_;
  DriverRoot driver_;
  const os::HostFs& host_;
  const os::HostFs& devices_;
  std::vector<std::string> warnings_;
};

// Read-only, at the same path in the container unless `container_path` says otherwise. The host's
// path is one that stays in the driver root whoever follows it.
void AddMount(const Discovery& discovery, std::string_view path, Edits& edits,
              std::string_view container_path = "");
// A socket: writable, nothing on it can be executed.
void AddSocketMount(const Discovery& discovery, std::string_view path, Edits& edits);

// The character device at `path` with what lstat says of it. kNotFound, kInvalidArgument as
// HostFs::Device.
Status AddDeviceNode(const Discovery& discovery, const std::string& path, Edits& edits);
// Those of `paths` that are there.
void AddDeviceNodesIfThere(const Discovery& discovery, const std::vector<std::string>& paths,
                           Edits& edits);
// Character devices in `folder` whose names match, by name.
std::vector<std::string> GlobDevices(const Discovery& discovery, std::string_view folder,
                                     std::string_view pattern);

}  // namespace ndp::cdi
