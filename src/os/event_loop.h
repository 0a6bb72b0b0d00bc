// The one loop that owns all mutable state of the program (libevent beneath). Everything but Post,
// Stop and Poster belongs to the loop's thread. An idle loop never wakes.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"

namespace ndp::os {

class EventLoop {
 public:
  using Task = std::move_only_function<void()>;

  // Posts to the loop from any thread; outlives it harmlessly (tasks are then dropped). Copyable.
  class Poster {
   public:
    void Post(Task task) const;

   private:
    friend class EventLoop;
    struct Shared;
    explicit Poster(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    std::shared_ptr<Shared> shared_;
  };

  // A timer, descriptor watch or signal registration: ends when destroyed. Loop thread only. May
  // outlive the loop; then nothing comes any more.
  class Handle {
   public:
    Handle() = default;
    Handle(Handle&&) noexcept;
    Handle& operator=(Handle&&) noexcept;
    ~Handle();
    // True from registration to Cancel, also after a timer has fired.
    explicit operator bool() const { return state_ != nullptr; }
    void Cancel() { *this = Handle(); }

   private:
    friend class EventLoop;
    struct State;
    explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };

  static Result<std::unique_ptr<EventLoop>> Create();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  Poster poster() const;
  // Any thread. Tasks run in the order they were posted; a task posted by a task runs in the next
  // round, so descriptors and timers are never starved.
  void Post(Task task);

  // In all four, the callback may destroy its own handle.
  // Once, after `delay`.
  [[nodiscard]] Handle After(Duration delay, Task task);
  // Again and again; libevent keeps the period.
  [[nodiscard]] Handle Every(Duration period, std::function<void()> callback);
  // While the descriptor is ready (level triggered). Cancel before closing the descriptor. Not for
  // regular files, which epoll refuses.
  enum class Ready { kRead, kWrite };
  [[nodiscard]] Handle Watch(int fd, Ready ready, std::function<void()> callback);
  // The signal must be blocked in every thread (BlockSignals in main before the first thread).
  // One handle per signal at a time.
  [[nodiscard]] Handle OnSignal(int signal, std::function<void()> callback);

  void Run();      // until Stop
  void RunOnce();  // waits for the next events, handles them, returns; for tests
  void Stop();     // any thread; a Stop before Run ends that Run at once

  // libevent's base, for the web room's evhttp: struct event_base*.
  void* native();

 private:
  struct Base;
  explicit EventLoop(std::shared_ptr<Base> base);
  void Drain();

  std::shared_ptr<Base> base_;
  std::shared_ptr<Poster::Shared> shared_;
  Handle wake_;
};

}  // namespace ndp::os
