// What pods hold of this node's devices: what the kubelet has written down and, while devices wait
// for pods to let go of them, what it says when it is asked. Loop thread only.
//
// The kubelet writes down which devices a pod gets, but takes an ended pod's entry out only when
// the next pod asks for a device. On a node whose resources were renamed, shared or sliced after
// its last pod had ended, everything would be withheld and that next pod would never come.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "os/event_loop.h"
#include "plugin/held_devices.h"

namespace ndp::node {

class Holders {
 public:
  using Answer = std::move_only_function<void(Result<plugin::HeldDevices>)>;
  // Asks the kubelet; the answer may come on any thread.
  using Ask = std::function<void(Answer)>;

  // While somebody waits, the kubelet is asked this often; so many times slower after two answers.
  static constexpr Duration kAskEvery = std::chrono::seconds(5);
  static constexpr int kPatience = 6;

  // `changed`: what is held has changed without a new checkpoint, or it is time for another Doubt.
  Holders(os::EventLoop& loop, Ask ask, std::function<void()> changed,
          Duration ask_every = kAskEvery);
  ~Holders();
  Holders(const Holders&) = delete;
  Holders& operator=(const Holders&) = delete;

  // Reads the checkpoint in the kubelet's plugin folder.
  void Read(const std::filesystem::path& folder);
  // Devices are withheld because pods hold them: see whether they still do.
  void Doubt();

  const plugin::HeldDevices& held() const { return held_; }
  // Why the checkpoint cannot be read; empty where it can. What was held before is held then.
  const std::string& error() const { return error_; }

 private:
  // The file's inode and time of change: the kubelet writes a new file each time.
  using Version = std::pair<unsigned long, Duration>;

  void Settle();
  void OnAnswer(const std::optional<Version>& asked, Result<plugin::HeldDevices> answer);

  os::EventLoop& loop_;
  const Ask ask_;
  const std::function<void()> changed_;
  const Duration ask_every_;
  std::filesystem::path file_;
  std::optional<Version> version_;  // nullopt: no file
  plugin::HeldDevices written_;
  // The last two answers since the file has been as it is. A pod that is just being admitted is
  // written down already and not listed yet: what one of two answers has counts as held.
  std::optional<plugin::HeldDevices> latest_;
  std::optional<plugin::HeldDevices> before_;
  plugin::HeldDevices held_;
  std::string error_;
  std::string ask_error_;
  bool asking_ = false;
  os::EventLoop::Handle again_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ndp::node
