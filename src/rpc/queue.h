// One gRPC completion queue and the one thread that serves it. Whatever belongs to a server (its
// calls, streams, connections) is touched on this thread only and so needs no lock.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace grpc {
class ServerCompletionQueue;
}

namespace ndp::rpc {

// An operation under way: what gRPC gives back when it is done. Queue's thread.
class Tag {
 public:
  virtual ~Tag() = default;
  virtual void Proceed(bool ok) = 0;
};

class Queue {
 public:
  using Task = std::move_only_function<void()>;

  explicit Queue(std::unique_ptr<grpc::ServerCompletionQueue> queue);
  // Waits until every operation has been given back: the server must have been shut down, and no
  // operation may be begun any more.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  grpc::ServerCompletionQueue* get() const { return queue_.get(); }

  // Any thread, until the destructor; in order. One wake-up for all that is posted before it.
  void Post(Task task);

 private:
  class Wake;
  void Serve();
  void Drain();

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;

  Mutex mutex_;
  std::vector<Task> inbox_ NDP_GUARDED_BY(mutex_);
  bool waking_ NDP_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses everything above
};

}  // namespace ndp::rpc
