#include "rpc/queue.h"

#include <absl/base/internal/sysinfo.h>
#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <utility>

namespace ndp::rpc {

class Queue::Wake final : public Tag {
 public:
  explicit Wake(Queue& queue) : queue_(queue) {
    // A time that is past for sure: "now" is rounded up to the next millisecond and then waits for
    // gRPC's timer thread (measured: 890 µs instead of 50).
    alarm_.Set(queue.get(), gpr_time_0(GPR_CLOCK_MONOTONIC), this);
  }
  void Proceed(bool /*ok*/) override {
    Queue& queue = queue_;
    delete this;
    queue.Drain();
  }

 private:
  Queue& queue_;
  grpc::Alarm alarm_;
};

Queue::Queue(std::unique_ptr<grpc::ServerCompletionQueue> queue)
    : queue_(std::move(queue)), thread_([this] { Serve(); }) {
  // Abseil reads the number of processors from /sys and keeps it the first time that one of gRPC's
  // locks is contended: that is not to be on a call.
  absl::base_internal::NumCPUs();
}

Queue::~Queue() {
  queue_->Shutdown();
  thread_.join();
}

void Queue::Serve() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Tag*>(tag)->Proceed(ok);
}

void Queue::Post(Task task) {
  {
    MutexLock lock(mutex_);
    inbox_.push_back(std::move(task));
    if (std::exchange(waking_, true)) return;
  }
  new Wake(*this);
}

void Queue::Drain() {
  std::vector<Task> tasks;
  {
    MutexLock lock(mutex_);
    waking_ = false;
    tasks.swap(inbox_);
  }
  for (Task& task : tasks) task();
}

}  // namespace ndp::rpc
