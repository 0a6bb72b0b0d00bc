// The state of the library inside one client process: machine, references, session, handles.
// Thread-safe, as NVML is.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim_nvml/abi.h"
#include "sim_state/machine.h"
#include "sim_state/sessions.h"

namespace ndp::sim_nvml {

using sim_state::Machine;

// A handle is the address of one of these. They are numbered by enumeration index, not by GPU, and
// live as long as the library: a handle kept over a shutdown may mean another GPU afterwards, as it
// may with the driver.
struct HandleSlot {
  enum class Kind : std::uint8_t { kGpu, kMig, kGpuInstance, kComputeInstance };
  Kind kind = Kind::kGpu;
  std::uint8_t index = 0;  // enumeration index of the GPU
  std::uint8_t sub = 0;    // MIG index, or place among the GPU instances
};

// What an initialisation saw. Immutable.
struct SessionView {
  std::uint32_t epoch = 0;
  std::uint32_t gpu_count = 0;
  std::uint32_t order[sim_state::kMaxGpus] = {};
  // MIG as it was: a session goes on showing instances that were deleted since.
  std::vector<sim_state::MigLayout> mig;  // by enumeration index
};

// The GPUs and events that a client asked for.
struct EventSet {
  struct Registration {
    std::uint32_t slot = 0;
    std::uint32_t index = 0;
    std::uint64_t types = 0;
    std::uint64_t since = 0;  // ring position: earlier events are lost
  };
  std::mutex mutex;
  std::atomic<bool> freed{false};
  std::uint64_t cursor = 0;  // next event of the ring to look at
  std::vector<Registration> registrations;
};

class Library {
 public:
  static Library& Get();
  ~Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // `attach`: take hold of every GPU.
  Return Init(unsigned function, bool attach);
  Return Shutdown();

  void Count(unsigned function);
  // Which of the faults that are set are to be played: a call that has played some must not play
  // them again when it learns which GPU it is about, nor whenever it looks around while it waits.
  enum class Play { kAll, kOfGpuOnly, kAllButLatency };
  // Plays what is set for the function and the GPU (its slot; -1 for calls that name none): waits
  // out latency and hangs, returns the error.
  Return Faults(unsigned function, int slot, Play play = Play::kAll) const;
  // kSuccess with the session's view, or why there is none.
  Return Session(std::shared_ptr<const SessionView>* view) const;
  // Waits while the GPU hangs; then its state as a status.
  Return AwaitGpu(std::uint32_t slot) const;
  // Machine::WaitForChange, noted as a call that is out.
  void Wait(const Machine& machine, std::uint32_t seen, std::int64_t timeout_ns) const;
  bool waiting() const { return waiting_.load() != 0; }
  // nullptr where no state file was found yet.
  std::shared_ptr<Machine> machine() const;

  // Takes hold of GPUs (bits by slot), as looking them up does.
  void Attach(std::uint32_t slots);

  Handle ToHandle(HandleSlot::Kind kind, std::uint32_t index, std::uint32_t sub = 0);
  // nullptr where the pointer is no handle.
  const HandleSlot* Resolve(Handle handle) const;

  Handle AddEventSet();
  std::shared_ptr<EventSet> FindEventSet(Handle handle) const;
  bool RemoveEventSet(Handle handle);

 private:
  Library();
  void OpenMachine();

  std::string own_path_;     // of this library's file
  std::string own_version_;  // in its name; empty for a plain libnvidia-ml.so.1

  mutable std::mutex mutex_;
  // All below: under mutex_.
  std::shared_ptr<Machine> machine_;
  std::shared_ptr<const SessionView> view_;
  sim_state::Client* client_ = nullptr;
  sim_state::SessionLock lock_;
  std::uint32_t references_ = 0;
  std::map<Handle, std::shared_ptr<EventSet>> event_sets_;

  mutable std::atomic<int> waiting_{0};

  // Constant.
  std::vector<HandleSlot> handles_;
};

}  // namespace ndp::sim_nvml
