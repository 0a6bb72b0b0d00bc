// `ndp-sim run`: a node with simulated GPUs from its start to its end, told to a person on standard
// output. Each step blocks until it has happened, and fails where it does not.
#pragma once

#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "doc/value.h"
#include "os/event_loop.h"
#include "os/process.h"
#include "sim_kubelet/kubelet.h"

namespace ndp::sim_kubelet {

class Demo {
 public:
  struct Options {
    std::filesystem::path dir;
    std::filesystem::path plugin;  // the program ndp
    std::string profile;
    std::string resource = "nvidia.com/gpu";
    Duration limit = std::chrono::seconds(30);  // of each step
  };

  Demo(os::EventLoop& loop, Kubelet& kubelet, Options options);

  // In this order, on a thread beside the loop's.
  Status MakeMachine();
  Status Tell();  // the kubelet must run
  Status StopPlugin();

  // Loop thread, when the loop runs no more: ends the children the hard way. Afterwards nothing of
  // this writes into the folder, whatever the other thread is at.
  void Abort();

  static std::filesystem::path LogOf(const std::filesystem::path& dir) {
    return dir / "plugin.log";
  }

 private:
  Status StartPlugin();
  Status ShowAllocation();
  Status ShowFault();
  Status ShowReason();
  Status ShowRecovery();
  Status WaitForGpus(int allocatable);
  // The UUID of a GPU, of one that no pod holds where there is one.
  Result<std::string> Victim() const;
  // The answer names the devices that the kubelet has chosen.
  static Status CheckAnswer(const doc::Value& answer);
  // Runs what writes into the folder; kUnavailable once all has been given up. It must not wait for
  // the loop.
  template <typename F>
  auto OnFiles(F write) -> decltype(write()) {
    const std::lock_guard lock(files_);
    if (aborted_) return Error(Code::kUnavailable, "interrupted");
    return write();
  }

  os::EventLoop& loop_;
  Kubelet& kubelet_;
  Options options_;
  std::filesystem::path driver_root_;
  int gpus_ = 0;
  std::vector<std::string> held_;
  std::string victim_;
  std::promise<os::ExitStatus> exit_;
  std::shared_future<os::ExitStatus> exited_ = exit_.get_future().share();
  std::mutex files_;
  bool aborted_ = false;
  // Loop thread only.
  std::unique_ptr<os::Child> child_;   // the plugin
  std::unique_ptr<os::Child> health_;  // ndp health
};

}  // namespace ndp::sim_kubelet
