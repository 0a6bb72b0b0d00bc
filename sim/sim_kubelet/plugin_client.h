// The kubelet's connection to one plugin's socket (gRPC). Calls may be made from any thread;
// Close ends them all.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "doc/value.h"
#include "sim_kubelet/bookkeeping.h"

namespace ndp::sim_kubelet {

// One container's answer of Allocate.
struct AllocateAnswer {
  doc::Value json;         // envs, mounts, devices, annotations, cdiDevices
  std::string serialised;  // for the checkpoint
};

class PluginClient {
 public:
  // Connects at once or fails with kNotFound or kUnavailable.
  static Result<std::shared_ptr<PluginClient>> Connect(const std::filesystem::path& socket);
  ~PluginClient();
  PluginClient(const PluginClient&) = delete;
  PluginClient& operator=(const PluginClient&) = delete;

  Result<PluginOptions> Options();
  // Reads lists until the stream ends; says how it ended ("OK", "UNAVAILABLE: Socket closed").
  std::string Watch(const std::function<void(std::vector<Device>)>& on_list);
  // No deadline, as the kubelet's.
  Result<std::vector<std::string>> Preferred(const Choice::Question& question, int size);
  Result<AllocateAnswer> Allocate(const std::vector<std::string>& ids);
  Status PreStart(const std::vector<std::string>& ids);

  // Ends the stream alone; then Watch returns.
  void CancelStream();
  // Ends every call, and the connection.
  void Close();

 private:
  struct State;
  explicit PluginClient(std::unique_ptr<State> state);
  template <typename Call>
  Status Run(const char* name, Duration deadline, Call call);

  std::unique_ptr<State> state_;
};

}  // namespace ndp::sim_kubelet
