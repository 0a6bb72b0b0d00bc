// The state file of a simulated machine, mapped. Clients of the library and ndp-sim's sub-commands
// meet here. Thread-safe; every write reaches waiters of all processes at once.
//
// A writer may be killed at any point: writers exclude each other by flock, which dies with them,
// and a reader that meets a half-finished write gives up waiting for it after a few milliseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.h"
#include "sim_state/layout.h"

namespace ndp::sim_state {

// Where the state lies under a driver root.
inline constexpr char kStatePath[] = ".ndp-sim/state";

// The state file of the driver root that `inside` (a file or folder) is part of: the nearest folder
// above it that holds one. nullopt where there is none.
std::optional<std::filesystem::path> FindStateFile(const std::filesystem::path& inside);

class Machine {
 public:
  // A new file in place of an old one, whose clients are told that it is retired. Its folder
  // exists.
  static Result<std::shared_ptr<Machine>> Create(const std::filesystem::path& path);
  // kNotFound where there is no machine; kInvalidArgument for a file of another version. A file
  // that is not writable can be watched: what the client would write stays private to it.
  static Result<std::shared_ptr<Machine>> Open(const std::filesystem::path& path);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool writable() const { return writable_; }
  // Whether the file that is mapped is still the one at the path.
  bool InPlace() const;

  // For single words, and inside Read; everything that must fit together is read by Read.
  const Control& control() const { return *control_; }
  Clients& clients() { return *clients_; }
  const Clients& clients() const { return *clients_; }

  // Runs `read` (which copies what it needs out of the Control) until no writer was at work.
  template <typename F>
  auto Read(F&& read) const {
    for (int attempt = 0;; ++attempt) {
      const std::uint32_t before = StableSequence(attempt);
      auto value = read(*control_);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (control_->sequence.load(std::memory_order_relaxed) == before || attempt >= kMaxAttempts) {
        return value;
      }
    }
  }

  // Runs `write(Control&)`, a function returning Status, alone among the writers, then wakes all
  // waiters. `write` must leave the Control untouched when it returns an error.
  template <typename F>
  Status Write(F&& write) {
    NDP_TRY(WriteLock lock, LockForWrite());
    BeginWrite();
    Status status = write(*control_);
    EndWrite();
    return status;
  }

  // Counts changes: read it, look at the state, then wait for it to move on.
  std::uint32_t Changes() const { return control_->change.load(std::memory_order_acquire); }
  // Until the count differs from `seen`, or `timeout_ns` is over. May return early.
  void WaitForChange(std::uint32_t seen, std::int64_t timeout_ns) const;

  // Appends an event; to be used within Write.
  static void PushEvent(Control& control, const Event& event);
  // Event `position` of the ring; nullopt where it was overwritten or not sent yet.
  std::optional<Event> EventAt(std::uint64_t position) const;

 private:
  static constexpr int kMaxAttempts = 1000;

  class WriteLock {
   public:
    explicit WriteLock(int fd) : fd_(fd) {}
    WriteLock(WriteLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    ~WriteLock();

   private:
    int fd_;
  };

  Machine(std::filesystem::path path, void* base, bool writable);
  std::uint32_t StableSequence(int attempt) const;
  Result<WriteLock> LockForWrite() const;
  void BeginWrite();
  void EndWrite();

  std::filesystem::path path_;
  void* base_;
  bool writable_;
  Control* control_;
  Clients* clients_;
};

std::int64_t MonotonicNs();
std::int64_t RealtimeNs();

// Copies text into a fixed field, cut to fit, always terminated.
template <std::size_t N>
void SetText(char (&field)[N], std::string_view text) {
  const std::size_t size = text.size() < N - 1 ? text.size() : N - 1;
  for (std::size_t i = 0; i < N; ++i) field[i] = i < size ? text[i] : '\0';
}

}  // namespace ndp::sim_state
