// The kubelet folder of a machine, while one stand-in plays in it. Any thread.
#pragma once

#include <filesystem>
#include <utility>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ndp::sim_kubelet {

// Makes the folder where it is missing, with the mode of the real one's.
Status MakeKubeletFolder(const std::filesystem::path& folder);

class Claim {
 public:
  // Claims D/kubelet, and makes it where it is missing. kUnavailable while another process has it.
  // The kernel ends a claim with its process, so nothing of a killed one stands in the way.
  static Result<Claim> Of(const std::filesystem::path& dir);

 private:
  explicit Claim(os::UniqueFd fd) : fd_(std::move(fd)) {}
  os::UniqueFd fd_;  // of the folder, locked
};

}  // namespace ndp::sim_kubelet
