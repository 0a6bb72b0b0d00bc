// Further ListAndWatch streams beside the kubelet's own, each on a connection of its own: as a
// second client, or a kubelet whose old stream has not ended yet, has them. Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "doc/value.h"
#include "sim_kubelet/plugin_client.h"

namespace ndp::sim_kubelet {

class Streams {
 public:
  Streams() = default;
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // kInvalidArgument where a stream of that name is open.
  Status Open(const std::string& name, const std::filesystem::path& socket);
  // Ends the call; what it saw stays to be asked for. kNotFound where there is none of that name.
  Status Close(const std::string& name);

  // {"a": {"open": true, "lists": 2, "unhealthy": ["GPU-…"], "ended": "CANCELLED: …"}}
  doc::Value Describe() const;

 private:
  struct Stream;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Stream>> streams_;
};

}  // namespace ndp::sim_kubelet
