// A machine with GPUs for tests: a Loader and its Drivers with state, whose faults are set at run
// time from any thread. It keeps NVML's manners: events before registration are lost, a lost GPU
// makes every wait fail at once, a session outlives nothing.
//
//   FakeMachine machine;
//   machine.AddGpu("GPU-a", "0000:01:00.0");
//   auto driver = machine.Open();
//   machine.RaiseXid("0000:01:00.0", 79);
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nvml/driver.h"

namespace ndp {

class FakeMachine final : public nvml::Loader {
 public:
  struct Gpu {
    nvml::Gpu gpu;
    nvml::HealthSample sample;
    std::uint64_t used_memory = 0;
    int status = nvml::kSuccess;  // of every call that names this GPU
    bool hang = false;            // every call that names it waits until this is false again
    int register_status = nvml::kSuccess;
    std::uint64_t supported_events = ~std::uint64_t{0};
    std::vector<nvml::NvLink> links;
  };

 private:
  struct Set {
    std::map<std::string, std::uint64_t> registered;
    std::deque<nvml::Event> events;
  };
  struct State {
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::deque<Gpu> gpus;  // references stay good
    std::map<int, Set> sets;
    int last_set = 0;
    int sessions = 0;
    int session_status = nvml::kSuccess;
    std::optional<Error> init_error;
    std::map<std::string, int> calls;
    bool time_held = false;
    std::chrono::milliseconds time{0};  // where it is held
    int waiting = 0;                    // in EventSource::Wait

    Gpu* Find(const std::string& pci_bus_id) {
      const auto at = std::ranges::find_if(
          gpus, [&](const Gpu& gpu) { return gpu.gpu.pci_bus_id == pci_bus_id; });
      return at != gpus.end() ? &*at : nullptr;
    }
  };
  using Lock = std::unique_lock<std::mutex>;

  static std::unexpected<nvml::Failure> Fail(int status, std::string call) {
    return std::unexpected(
        nvml::Failure{.status = status, .call = std::move(call), .text = "fake"});
  }

  template <typename Change>
  decltype(auto) Locked(Change change) {
    const Lock lock(state_->mutex);
    state_->changed.notify_all();
    return change(*state_);
  }
  template <typename Question>
  auto Read(Question question) const {
    const Lock lock(state_->mutex);
    return question(*state_);
  }

  // Shared with sessions that a detached thread still holds when the test is over.
  std::shared_ptr<State> state_ = std::make_shared<State>();

 public:
  Gpu& AddGpu(std::string uuid, std::string pci_bus_id) {
    return Locked([&](State& state) -> Gpu& {
      const auto index = static_cast<unsigned>(state.gpus.size());
      Gpu gpu;
      gpu.gpu.index = index;
      gpu.gpu.uuid = std::move(uuid);
      gpu.gpu.pci_bus_id = pci_bus_id;
      gpu.gpu.minor = index;
      gpu.gpu.name = "NVIDIA Fake";
      gpu.gpu.memory_bytes = std::uint64_t{16} << 30;
      gpu.gpu.compute_capability = {9, 0};
      return state.gpus.emplace_back(std::move(gpu));
    });
  }
  // Changes one GPU under the lock; calls that hang look again.
  template <typename Change>
  void Edit(const std::string& pci_bus_id, Change change) {
    Locked([&](State& state) {
      if (Gpu* gpu = state.Find(pci_bus_id)) change(*gpu);
    });
  }
  // Drops out of the enumeration; later ones move down an index.
  void RemoveGpu(const std::string& pci_bus_id) {
    Locked([&](State& state) {
      std::erase_if(state.gpus, [&](const Gpu& gpu) { return gpu.gpu.pci_bus_id == pci_bus_id; });
      for (std::size_t i = 0; i < state.gpus.size(); ++i) {
        state.gpus[i].gpu.index = static_cast<unsigned>(i);
      }
    });
  }
  void Raise(const nvml::Event& event) {
    Locked([&](State& state) {
      for (auto& [id, set] : state.sets) {
        const auto mask = set.registered.find(event.pci_bus_id);
        if (mask != set.registered.end() && (mask->second & event.type) != 0) {
          set.events.push_back(event);
        }
      }
    });
  }
  void RaiseXid(const std::string& pci_bus_id, std::uint64_t xid,
                std::optional<unsigned> gpu_instance = {},
                std::optional<unsigned> compute_instance = {}) {
    Raise({.type = nvml::kEventXid,
           .data = xid,
           .pci_bus_id = pci_bus_id,
           .gpu_instance = gpu_instance,
           .compute_instance = compute_instance});
  }
  // Every call of a living session answers this; kSuccess ends it.
  void SetSessionStatus(int status) {
    Locked([&](State& state) { state.session_status = status; });
  }
  void SetInitError(std::optional<Error> error) {
    Locked([&](State& state) { state.init_error = std::move(error); });
  }

  // From now on waits for events take the machine's own time, which passes by PassTime alone.
  void HoldTime() {
    Locked([](State& state) { state.time_held = true; });
  }
  void PassTime(std::chrono::milliseconds span) {
    Locked([&](State& state) { state.time += span; });
  }
  // Ends it: whoever waits has waited long enough.
  void LetTimeGo() {
    Locked([](State& state) { state.time_held = false; });
  }
  // Threads that are waiting for events now.
  int waiting() const {
    return Read([](const State& s) { return s.waiting; });
  }

  int open_sessions() const {
    return Read([](const State& s) { return s.sessions; });
  }
  int open_event_sets() const {
    return Read([](const State& s) { return static_cast<int>(s.sets.size()); });
  }
  bool registered(const std::string& pci_bus_id) const {
    return Read([&](const State& s) {
      return std::ranges::any_of(
          s.sets, [&](const auto& set) { return set.second.registered.contains(pci_bus_id); });
    });
  }
  // How often a function of Driver or EventSource was called: "Sample", "Wait", …
  int calls(const std::string& name) const {
    return Read([&](const State& s) {
      const auto found = s.calls.find(name);
      return found != s.calls.end() ? found->second : 0;
    });
  }

  Result<std::shared_ptr<nvml::Driver>> Open() override {
    std::unique_lock lock(state_->mutex);
    ++state_->calls["Open"];
    if (state_->init_error) return *state_->init_error;
    ++state_->sessions;
    return std::shared_ptr<nvml::Driver>(std::make_shared<Session>(state_));
  }

 private:
  class Source;
  class Session final : public nvml::Driver, public std::enable_shared_from_this<Session> {
   public:
    explicit Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
    ~Session() override {
      const Lock lock(state_->mutex);
      --state_->sessions;
      state_->changed.notify_all();
    }

    nvml::Reply<nvml::DriverInfo> Info() override {
      return Global<nvml::DriverInfo>("Info", [](State&) {
        return nvml::DriverInfo{
            .driver_version = "570.86.15", .nvml_version = "12.570", .cuda_version = 12080};
      });
    }
    nvml::Reply<unsigned> DeviceCount() override {
      return Global<unsigned>("DeviceCount",
                              [](State& s) { return static_cast<unsigned>(s.gpus.size()); });
    }
    nvml::Reply<nvml::Gpu> ReadGpu(unsigned index) override {
      std::string pci;
      {
        const Lock lock(state_->mutex);
        if (index >= state_->gpus.size()) return Fail(nvml::kInvalidArgument, "ReadGpu");
        pci = state_->gpus[index].gpu.pci_bus_id;
      }
      return Of<nvml::Gpu>("ReadGpu", pci, [](Gpu& gpu) { return gpu.gpu; });
    }
    nvml::Reply<Identity> Identify(const std::string& pci) override {
      return Of<Identity>("Identify", pci, [](Gpu& gpu) {
        return Identity{.index = gpu.gpu.index, .uuid = gpu.gpu.uuid};
      });
    }
    nvml::Reply<std::uint64_t> UsedMemory(const std::string& pci) override {
      return Of<std::uint64_t>("UsedMemory", pci, [](Gpu& gpu) { return gpu.used_memory; });
    }
    nvml::Reply<nvml::HealthSample> Sample(const std::string& pci) override {
      return Of<nvml::HealthSample>("Sample", pci, [](Gpu& gpu) { return gpu.sample; });
    }
    nvml::Reply<int> RecoveryAction(const std::string& pci) override {
      auto action = Of<std::optional<int>>("RecoveryAction", pci,
                                           [](Gpu& gpu) { return gpu.sample.recovery_action; });
      if (!action) return std::unexpected(action.error());
      if (!*action) return Fail(nvml::kNotSupported, "RecoveryAction");
      return **action;
    }
    nvml::Reply<int> CommonAncestor(const std::string& a, const std::string& b) override {
      return Of<int>("CommonAncestor", a, [&](Gpu&) { return a == b ? 0 : 30; });
    }
    nvml::Reply<std::vector<nvml::NvLink>> ActiveLinks(const std::string& pci) override {
      return Of<std::vector<nvml::NvLink>>("ActiveLinks", pci, [](Gpu& gpu) { return gpu.links; });
    }
    nvml::Reply<void> SetComputeMode(const std::string& pci, int mode) override {
      auto done = Of<int>("SetComputeMode", pci, [mode](Gpu& gpu) {
        gpu.sample.compute_mode = mode;
        return 0;
      });
      if (!done) return std::unexpected(done.error());
      return {};
    }
    nvml::Reply<std::unique_ptr<nvml::EventSource>> OpenEvents() override {
      const Lock lock(state_->mutex);
      ++state_->calls["OpenEvents"];
      if (state_->session_status != nvml::kSuccess) {
        return Fail(state_->session_status, "OpenEvents");
      }
      const int id = ++state_->last_set;
      state_->sets[id];
      return std::make_unique<Source>(state_, shared_from_this(), id);
    }
    const std::filesystem::path& library() const override { return library_; }

   private:
    template <typename T, typename Answer>
    nvml::Reply<T> Global(const char* name, Answer answer) {
      const Lock lock(state_->mutex);
      ++state_->calls[name];
      if (state_->session_status != nvml::kSuccess) return Fail(state_->session_status, name);
      return answer(*state_);
    }
    template <typename T, typename Answer>
    nvml::Reply<T> Of(const char* name, const std::string& pci, Answer answer) {
      Lock lock(state_->mutex);
      ++state_->calls[name];
      state_->changed.wait(lock, [&] {
        const Gpu* gpu = state_->Find(pci);
        return gpu == nullptr || !gpu->hang;
      });
      if (state_->session_status != nvml::kSuccess) return Fail(state_->session_status, name);
      Gpu* gpu = state_->Find(pci);
      if (gpu == nullptr) return Fail(nvml::kNotFound, name);
      if (gpu->status != nvml::kSuccess) return Fail(gpu->status, name);
      return answer(*gpu);
    }

    std::shared_ptr<State> state_;
    std::filesystem::path library_ = "/usr/lib64/libnvidia-ml.so.570.86.15";
  };

  class Source final : public nvml::EventSource {
   public:
    Source(std::shared_ptr<State> state, std::shared_ptr<Session> session, int id)
        : state_(std::move(state)), session_(std::move(session)), id_(id) {}
    ~Source() override {
      const Lock lock(state_->mutex);
      state_->sets.erase(id_);
    }
    nvml::Reply<std::uint64_t> Register(const std::string& pci, std::uint64_t wanted) override {
      const Lock lock(state_->mutex);
      ++state_->calls["Register"];
      Gpu* gpu = state_->Find(pci);
      if (gpu == nullptr) return Fail(nvml::kNotFound, "Register");
      if (gpu->status != nvml::kSuccess) return Fail(gpu->status, "Register");
      if (gpu->register_status != nvml::kSuccess) return Fail(gpu->register_status, "Register");
      const std::uint64_t mask = wanted & gpu->supported_events;
      state_->sets[id_].registered[pci] = mask;
      return mask;
    }
    nvml::Reply<std::optional<nvml::Event>> Wait(std::chrono::milliseconds timeout) override {
      Lock lock(state_->mutex);
      ++state_->calls["Wait"];
      Set& set = state_->sets[id_];
      int status = nvml::kSuccess;
      const auto over = [&] {
        status = WaitStatus(set);
        return status != nvml::kSuccess || !set.events.empty();
      };
      ++state_->waiting;
      if (state_->time_held) {
        const auto end = state_->time + timeout;
        state_->changed.wait(lock,
                             [&] { return over() || !state_->time_held || state_->time >= end; });
      } else {
        state_->changed.wait_for(lock, timeout, over);
      }
      --state_->waiting;
      if (status != nvml::kSuccess) return Fail(status, "Wait");
      if (set.events.empty()) return std::nullopt;
      nvml::Event event = std::move(set.events.front());
      set.events.pop_front();
      return event;
    }

   private:
    int WaitStatus(const Set& set) const {
      if (state_->session_status != nvml::kSuccess) return state_->session_status;
      for (const auto& [pci, mask] : set.registered) {
        const Gpu* gpu = state_->Find(pci);
        if (gpu != nullptr && gpu->status == nvml::kGpuIsLost) return nvml::kGpuIsLost;
      }
      return nvml::kSuccess;
    }
    std::shared_ptr<State> state_;
    std::shared_ptr<Session> session_;  // kept open as long as the set
    int id_;
  };
};

}  // namespace ndp
