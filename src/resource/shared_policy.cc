#include "resource/shared_policy.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "base/result.h"
#include "resource/tied_gpus.h"

namespace ndp::resource {
namespace {

// A GPU, or one device of it: the rules are the same on both levels.
struct Load {
  int allocated = 0;  // by others and by this request
  int picked = 0;     // by this request
  int free = 0;
};

Load LoadOf(const SharedDevice& device) {
  return {.allocated = device.total - device.available + device.required,
          .picked = device.required,
          .free = device.available - device.required};
}

void Take(Load& load, int count) {
  load.allocated += count;
  load.picked += count;
  load.free -= count;
}

class GpuLevel {
 public:
  GpuLevel(std::map<int, Load> gpus, const PairScores& scores, int size)
      : gpus_(std::move(gpus)), scores_(scores), remaining_(size) {
    for (const auto& [gpu, load] : gpus_) {
      if (load.picked > 0) chosen_.push_back(gpu);
    }
  }

  // Rounds: all GPUs of the lowest (allocated, picked) give one each, as long as the round is
  // whole; the last, partial one is where ties matter.
  void Distribute() {
    using Key = std::pair<std::pair<int, int>, int>;  // ((allocated, picked), gpu)
    std::priority_queue<Key, std::vector<Key>, std::greater<>> queue;
    const auto push = [&queue](int gpu, const Load& load) {
      if (load.free > 0) queue.push({{load.allocated, load.picked}, gpu});
    };
    for (const auto& [gpu, load] : gpus_) push(gpu, load);
    while (remaining_ > 0) {
      const std::pair<int, int> lowest = queue.top().first;
      std::vector<int> tied;
      while (!queue.empty() && queue.top().first == lowest) {
        tied.push_back(queue.top().second);
        queue.pop();
      }
      if (static_cast<int>(tied.size()) > remaining_) {
        tied = Choose(tied, remaining_);
      }
      for (const int gpu : tied) {
        TakeFrom(gpu, 1);
        push(gpu, gpus_[gpu]);
      }
    }
  }

  // The fullest GPUs are emptied one after the other.
  void Pack() {
    std::vector<std::pair<std::pair<int, int>, int>> fullest;
    for (const auto& [gpu, load] : gpus_) {
      if (load.free > 0) fullest.push_back({{-load.allocated, -load.picked}, gpu});
    }
    std::ranges::sort(fullest);
    for (std::size_t i = 0; i < fullest.size() && remaining_ > 0;) {
      std::vector<int> tied;
      for (const auto load = fullest[i].first; i < fullest.size() && fullest[i].first == load;
           ++i) {
        tied.push_back(fullest[i].second);
      }
      PackTied(std::move(tied));
    }
  }

  const std::map<int, Load>& gpus() const { return gpus_; }

 private:
  // ChooseTied for GPUs some of which the request may hold already: these come first, since they
  // open no further GPU.
  std::vector<int> Choose(const std::vector<int>& tied, int size) const {
    std::vector<int> held;
    std::vector<int> others;
    for (const int gpu : tied) {
      (std::ranges::find(chosen_, gpu) != chosen_.end() ? held : others).push_back(gpu);
    }
    if (static_cast<int>(held.size()) >= size) {
      held.resize(static_cast<std::size_t>(size));
      return held;
    }
    const int more = size - static_cast<int>(held.size());
    for (const int gpu : ChooseTied(scores_, chosen_, others, more)) held.push_back(gpu);
    std::ranges::sort(held);
    return held;
  }

  void PackTied(std::vector<int> tied) {
    const auto free_of = [this](int gpu) { return gpus_[gpu].free; };
    while (!tied.empty() && remaining_ > 0) {
      const auto [least, most] = std::ranges::minmax(tied, {}, free_of);
      std::vector<int> next;
      if (free_of(least) == free_of(most)) {
        const int needed = (remaining_ + free_of(least) - 1) / free_of(least);
        next = Choose(tied, std::min(needed, static_cast<int>(tied.size())));
      } else {
        // One that holds all the rest saves opening a second.
        std::vector<int> enough;
        std::ranges::copy_if(tied, std::back_inserter(enough),
                             [&](int gpu) { return free_of(gpu) >= remaining_; });
        next = Choose(enough.empty() ? tied : enough, 1);
      }
      for (const int gpu : next) {
        TakeFrom(gpu, std::min(remaining_, free_of(gpu)));
        std::erase(tied, gpu);
      }
    }
  }

  void TakeFrom(int gpu, int count) {
    Load& load = gpus_[gpu];
    if (load.picked == 0) chosen_.push_back(gpu);
    Take(load, count);
    remaining_ -= count;
  }

  std::map<int, Load> gpus_;
  const PairScores& scores_;
  std::vector<int> chosen_;  // GPUs that the request takes from
  int remaining_;
};

// The devices of one GPU give `count` together.
void TakeWithin(std::vector<Load*>& devices, SharedPolicy policy, int count) {
  const auto before = [policy](const Load* a, const Load* b) {
    if (policy == SharedPolicy::kPacked) {
      return std::pair(b->allocated, b->picked) < std::pair(a->allocated, a->picked);
    }
    return std::pair(a->allocated, a->picked) < std::pair(b->allocated, b->picked);
  };
  while (count > 0) {
    std::erase_if(devices, [](const Load* load) { return load->free == 0; });
    Load* next = *std::ranges::min_element(devices, before);
    const int taken = policy == SharedPolicy::kPacked ? std::min(count, next->free) : 1;
    Take(*next, taken);
    count -= taken;
  }
}

}  // namespace

std::vector<int> Share(std::span<const SharedDevice> devices, const PairScores& scores,
                       SharedPolicy policy, int size) {
  std::map<int, Load> gpus;
  std::vector<Load> loads;
  int available = 0;
  int required = 0;
  for (const SharedDevice& device : devices) {
    NDP_CHECK(device.required <= device.available && device.available <= device.total);
    const Load load = LoadOf(device);
    Load& gpu = gpus[device.gpu];
    gpu.allocated += load.allocated;
    gpu.picked += load.picked;
    gpu.free += load.free;
    loads.push_back(load);
    available += device.available;
    required += device.required;
  }
  NDP_CHECK(required <= size && size <= available);

  std::map<int, int> picked_before;
  for (const auto& [gpu, load] : gpus) picked_before[gpu] = load.picked;
  GpuLevel level(std::move(gpus), scores, size - required);
  if (policy == SharedPolicy::kPacked) {
    level.Pack();
  } else {
    level.Distribute();
  }

  std::map<int, std::vector<Load*>> by_gpu;
  for (std::size_t i = 0; i < devices.size(); ++i) by_gpu[devices[i].gpu].push_back(&loads[i]);
  for (const auto& [gpu, load] : level.gpus()) {
    TakeWithin(by_gpu[gpu], policy, load.picked - picked_before[gpu]);
  }
  std::vector<int> taken;
  taken.reserve(loads.size());
  for (const Load& load : loads) taken.push_back(load.picked);
  return taken;
}

}  // namespace ndp::resource
