// One simulated machine on disk: a folder D with the driver root D/root, which holds the state.
// Every change goes through here, so that state and files say the same. One thread; processes
// exclude each other for as long as they hold a Simulation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sim_profile/profile.h"
#include "sim_state/machine.h"

namespace ndp::sim_control {

struct UpOptions {
  std::filesystem::path dir;
  sim_profile::Profile profile;
  std::uint32_t gpus = 0;  // 0: all of the profile's
  std::string seed;
  std::filesystem::path nvml;  // the simulated library to install
};

class Simulation {
 public:
  // Makes the machine, in place of an older one. kUnavailable where that one has open sessions.
  static Result<Simulation> Up(const UpOptions& options);
  // kNotFound where no machine is up in `dir`, both.
  static Status Find(const std::filesystem::path& dir);
  static Result<Simulation> Open(const std::filesystem::path& dir);

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path driver_root() const;
  sim_state::Machine& machine() { return *machine_; }
  const sim_state::Control& control() const { return machine_->control(); }

  // A GPU by the number it had when the machine came up, which is its minor (whatever has happened
  // to the enumeration since), by UUID, or by PCI bus id. Its slot.
  Result<std::uint32_t> FindGpu(std::string_view text) const;

  // `change(Control&)` returns Status; the files follow.
  template <typename F>
  Status Change(F&& change) {
    NDP_TRY(machine_->Write(std::forward<F>(change)));
    return WriteFiles();
  }

  // Who holds the GPU open: "pid 4242 (python3)"; nullopt if nobody does.
  std::optional<std::string> UserOf(std::uint32_t slot) const;

 private:
  class Lock {
   public:
    explicit Lock(int fd = -1) : fd_(fd) {}
    Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Lock& operator=(Lock&& other) noexcept {
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~Lock();

   private:
    int fd_;
  };

  Simulation(std::filesystem::path root, std::shared_ptr<sim_state::Machine> machine, Lock lock)
      : root_(std::move(root)), machine_(std::move(machine)), lock_(std::move(lock)) {}

  static Result<Lock> Exclude(const std::filesystem::path& root);
  // Device nodes, /proc and /sys as the state has them.
  Status WriteFiles();

  std::filesystem::path root_;
  std::shared_ptr<sim_state::Machine> machine_;
  Lock lock_;
};

// The simulated library beside the running program, or where `make install` puts it.
Result<std::filesystem::path> FindNvmlLibrary();

// A version 4 UUID, as the kernel makes boot ids.
std::string NewBootId();

}  // namespace ndp::sim_control
