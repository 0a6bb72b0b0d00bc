// A stand-in for the kubelet's device manager, on a real socket: plugins register with it, it
// watches their lists and asks them for devices, with the real one's manners.
//
// Start and Stop belong to the loop's thread, the rest to any thread; calls that ask a plugin
// block.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "doc/value.h"
#include "os/event_loop.h"
#include "sim_kubelet/bookkeeping.h"
#include "sim_kubelet/event_log.h"

namespace ndp::sim_kubelet {

inline constexpr const char* kKubeletSocket = "kubelet.sock";
inline constexpr const char* kControlSocket = "control.sock";
inline constexpr const char* kCheckpointFile = "kubelet_internal_checkpoint";

// What the next Register calls meet.
struct RegisterFault {
  int refuse = 0;  // so many are refused
  std::string message = "registration refused";
  int delay = 0;  // so many wait first
  Duration by = std::chrono::seconds(1);
};

class Kubelet {
 public:
  struct Options {
    std::filesystem::path folder;  // where kubelet.sock lies
    Bookkeeping::Config bookkeeping;
    // How long Register goes on dialling back.
    Duration dial_limit = std::chrono::seconds(10);
    // With a topology policy other than none, the real kubelet crashes at an admission while a pod
    // holds an id that the list lacks.
    bool topology_policy = false;
  };

  Kubelet(os::EventLoop& loop, Options options, EventLog& log);
  ~Kubelet();
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  // As a kubelet starts: makes the folder, removes every socket in it (but our control socket),
  // reads the checkpoint, listens.
  Status Start();
  // All connections end. `leave_socket`: as after kill -9.
  void Stop(bool leave_socket);
  bool running() const;
  // Any thread: as if the file had been lost while the kubelet was down.
  void RemoveCheckpoint() const;

  // Admits one container: chooses devices, asks the plugin, keeps and checkpoints the answer.
  // {"devices": [...], "response": {...}}; the error is why the pod is rejected for good. A
  // resource that the kubelet does not know is no error: the container starts without it.
  Result<doc::Value> Admit(const ContainerRequest& request);
  // `keep_checkpoint`: the file has the pod until the next admission.
  Status ReleasePod(const std::string& pod, bool keep_checkpoint = false);

  // Bare calls, past all bookkeeping. No `available` means all healthy devices.
  Result<doc::Value> CallPreferred(const std::string& resource,
                                   std::optional<std::vector<std::string>> available,
                                   const std::vector<std::string>& must_include, int size);
  Result<doc::Value> CallAllocate(const std::string& resource, const std::vector<std::string>& ids);

  // The socket of the endpoint that is asked.
  Result<std::filesystem::path> SocketOf(const std::string& resource) const;
  // Of the endpoint, or (empty) of the one that is asked.
  Status DropStream(const std::string& resource, const std::string& endpoint);
  void SetRegisterFault(const RegisterFault& fault);

  // Resources with capacity, allocatable, devices and endpoints; pods with what they hold.
  doc::Value Describe() const;

  struct Condition {
    std::string resource;
    std::optional<int> capacity;
    std::optional<int> allocatable;
    std::optional<int> endpoints;  // connected ones
  };
  // kDeadlineExceeded with the present state where it does not come true in time. A resource that
  // is not known counts as 0 of everything.
  Status WaitFor(const Condition& condition, Duration limit) const;

 private:
  class Session;  // from Start to Stop
  Result<std::shared_ptr<Session>> Current() const;

  os::EventLoop& loop_;
  const Options options_;
  EventLog& log_;
  mutable std::mutex mutex_;
  RegisterFault fault_;
  std::shared_ptr<Session> session_;
};

}  // namespace ndp::sim_kubelet
