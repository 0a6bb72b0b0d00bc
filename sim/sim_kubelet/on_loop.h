// Runs something on the loop from another thread, and waits for it.
#pragma once

#include <future>
#include <memory>
#include <utility>

#include "os/event_loop.h"

namespace ndp::sim_kubelet {

template <typename F>
auto OnLoop(const os::EventLoop::Poster& loop, F task) {
  using Value = decltype(task());
  auto done = std::make_shared<std::promise<Value>>();
  std::future<Value> result = done->get_future();
  loop.Post([task = std::move(task), done]() mutable { done->set_value(task()); });
  return result.get();
}

}  // namespace ndp::sim_kubelet
