#include "os/event_loop.h"

#include <event2/event.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "base/mutex.h"
#include "os/unique_fd.h"

namespace ndp::os {
namespace {

timeval ToTimeval(Duration duration) {
  // Rounded up: a timer never fires early.
  const auto micros =
      std::chrono::ceil<std::chrono::microseconds>(std::max(duration, Duration::zero()));
  return {.tv_sec = micros.count() / 1'000'000, .tv_usec = micros.count() % 1'000'000};
}

}  // namespace

struct EventLoop::Base {
  event_base* events = nullptr;

  Base() = default;
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;
  ~Base() {
    if (events != nullptr) event_base_free(events);
  }
};

struct EventLoop::Poster::Shared {
  UniqueFd wake;
  Mutex mutex;
  std::vector<Task> tasks NDP_GUARDED_BY(mutex);
  bool closed NDP_GUARDED_BY(mutex) = false;
};

// Keeps the base, so that handles may go after the loop.
struct EventLoop::Handle::State : std::enable_shared_from_this<State> {
  std::shared_ptr<Base> base;
  event* registration = nullptr;
  UniqueFd fd;  // a signal's
  Task task;

  void Register(int descriptor, short what, const timeval* timeout) {
    registration = event_new(
        base->events, descriptor, what,
        [](evutil_socket_t, short, void* self) { static_cast<State*>(self)->Fire(); }, this);
    NDP_CHECK(registration != nullptr);
    NDP_CHECK(event_add(registration, timeout) == 0);
  }
  void Fire() {
    // The task may destroy the handle: the task itself must live until it has returned.
    auto keep = shared_from_this();
    task();
  }
  void Unregister() {
    if (registration != nullptr) event_free(std::exchange(registration, nullptr));
  }
  ~State() { Unregister(); }
};

EventLoop::Handle::Handle(Handle&&) noexcept = default;

EventLoop::Handle& EventLoop::Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    // First out of our hands, then ended: what the task owns may reach this handle again.
    auto old = std::exchange(state_, std::move(other.state_));
    if (old) old->Unregister();
  }
  return *this;
}

EventLoop::Handle::~Handle() {
  if (state_) state_->Unregister();
}

Result<std::unique_ptr<EventLoop>> EventLoop::Create() {
  event_config* config = event_config_new();
  if (config == nullptr) return Error(Code::kInternal, "create event loop: out of memory");
  // The coarse clock has 4 ms ticks; retries begin at 1 ms. No lock: other threads only write to
  // the eventfd. No cached time: a delay counts from the call, not from the round's begin.
  event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER | EVENT_BASE_FLAG_NOLOCK |
                                    EVENT_BASE_FLAG_NO_CACHE_TIME);
  auto base = std::make_shared<Base>();
  base->events = event_base_new_with_config(config);
  event_config_free(config);
  if (base->events == nullptr) return ErrnoError(errno, "create event loop");

  std::unique_ptr<EventLoop> loop(new EventLoop(std::move(base)));
  loop->shared_->wake.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!loop->shared_->wake) return ErrnoError(errno, "create event loop: eventfd");
  loop->wake_ =
      loop->Watch(loop->shared_->wake.get(), Ready::kRead, [self = loop.get()] { self->Drain(); });
  return loop;
}

EventLoop::EventLoop(std::shared_ptr<Base> base)
    : base_(std::move(base)), shared_(std::make_shared<Poster::Shared>()) {}

EventLoop::~EventLoop() {
  std::vector<Task> dropped;  // destroyed outside the lock: a task may own a Poster's user
  MutexLock lock(shared_->mutex);
  shared_->closed = true;
  dropped.swap(shared_->tasks);
}

void EventLoop::Poster::Post(Task task) const {
  bool first = false;
  {
    MutexLock lock(shared_->mutex);
    if (!shared_->closed) {
      first = shared_->tasks.empty();
      shared_->tasks.push_back(std::move(task));
    }
  }
  if (first) eventfd_write(shared_->wake.get(), 1);
}

void EventLoop::Drain() {
  eventfd_t count = 0;
  eventfd_read(shared_->wake.get(), &count);
  std::vector<Task> tasks;
  {
    MutexLock lock(shared_->mutex);
    tasks.swap(shared_->tasks);
  }
  for (Task& task : tasks) {
    task();
    task = nullptr;
  }
}

EventLoop::Poster EventLoop::poster() const { return Poster(shared_); }
void EventLoop::Post(Task task) { poster().Post(std::move(task)); }

EventLoop::Handle EventLoop::After(Duration delay, Task task) {
  auto state = std::make_shared<Handle::State>();
  state->base = base_;
  state->task = std::move(task);
  const timeval timeout = ToTimeval(delay);
  state->Register(-1, 0, &timeout);
  return Handle(std::move(state));
}

EventLoop::Handle EventLoop::Every(Duration period, std::function<void()> callback) {
  auto state = std::make_shared<Handle::State>();
  state->base = base_;
  state->task = std::move(callback);
  const timeval timeout = ToTimeval(period);
  state->Register(-1, EV_PERSIST, &timeout);
  return Handle(std::move(state));
}

EventLoop::Handle EventLoop::Watch(int fd, Ready ready, std::function<void()> callback) {
  auto state = std::make_shared<Handle::State>();
  state->base = base_;
  state->task = std::move(callback);
  state->Register(fd, static_cast<short>((ready == Ready::kRead ? EV_READ : EV_WRITE) | EV_PERSIST),
                  nullptr);
  return Handle(std::move(state));
}

EventLoop::Handle EventLoop::OnSignal(int signal, std::function<void()> callback) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  auto state = std::make_shared<Handle::State>();
  state->base = base_;
  state->fd.Reset(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  NDP_CHECK(static_cast<bool>(state->fd));
  state->task = [fd = state->fd.get(), callback = std::move(callback)] {
    signalfd_siginfo info{};
    if (read(fd, &info, sizeof info) == sizeof info) callback();
  };
  state->Register(state->fd.get(), EV_READ | EV_PERSIST, nullptr);
  return Handle(std::move(state));
}

void EventLoop::Run() { event_base_loop(base_->events, 0); }
void EventLoop::RunOnce() { event_base_loop(base_->events, EVLOOP_ONCE); }

void EventLoop::Stop() {
  Post([base = base_] { event_base_loopbreak(base->events); });
}

void* EventLoop::native() { return base_->events; }

}  // namespace ndp::os
