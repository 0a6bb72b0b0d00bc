// The one loop that owns all mutable state of the program (libevent beneath). Everything but Post
// and Poster belongs to the loop's thread.
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

  // A timer, descriptor watch or signal registration: ends when destroyed. Loop thread only.
  class Handle {
   public:
    Handle() = default;
    Handle(Handle&&) noexcept;
    Handle& operator=(Handle&&) noexcept;
    ~Handle();
    explicit operator bool() const { return state_ != nullptr; }
    void Cancel() { *this = Handle(); }

   private:
    friend class EventLoop;
    struct State;
    explicit Handle(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  static Result<std::unique_ptr<EventLoop>> Create();
  ~EventLoop();

  Poster poster() const;
  void Post(Task task);  // any thread

  // Once, after `delay`; the callback may destroy its own handle.
  Handle After(Duration delay, Task task);
  // Again and again; libevent keeps the period.
  Handle Every(Duration period, std::function<void()> callback);
  enum class Ready { kRead, kWrite };
  Handle Watch(int fd, Ready ready, std::function<void()> callback);
  // The signal must be blocked in every thread (BlockSignals in main before the first thread).
  Handle OnSignal(int signal, std::function<void()> callback);

  void Run();   // until Stop
  void Stop();  // any thread

  // libevent's base, for the web room's evhttp: struct event_base*.
  void* native();

 private:
  EventLoop();
  struct Base;
  std::unique_ptr<Base> base_;
};

}  // namespace ndp::os
