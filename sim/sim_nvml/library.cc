#include "sim_nvml/library.h"

#include <pthread.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <optional>

// libstdc++'s, for leak checkers; no header declares it.
namespace __gnu_cxx {
void __freeres();  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace ndp::sim_nvml {
namespace {

using sim_state::Control;
using sim_state::GpuState;
using sim_state::kMaxGpus;
using sim_state::kMaxInstances;
using sim_state::MonotonicNs;
using sim_state::Rule;
using sim_state::RuleKind;

// Far enough to be "for ever", near enough for a timespec.
constexpr std::int64_t kForever = std::int64_t{3600} * 1'000'000'000;
constexpr unsigned kKinds = 4;
constexpr unsigned kPerGpu = kKinds * kMaxInstances;

std::atomic<bool> forked{false};
std::once_flag once;
Library* the_library = nullptr;

// On dlclose and at exit. A thread that is still in a call (at exit: nobody can stop it) goes on
// using what it has.
__attribute__((destructor)) void Unload() {
  if (the_library != nullptr && the_library->waiting()) return;
  delete the_library;
  the_library = nullptr;
  // This library's own libstdc++ keeps memory for exceptions thrown when there is none left.
  __gnu_cxx::__freeres();
}

// The file this code was mapped from. The kernel's answer is right where dladdr's is not: the
// library was opened by a relative path, through a link, or as /proc/self/fd/N.
std::string OwnPath() {
  const auto here = reinterpret_cast<std::uintptr_t>(&OwnPath);
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return {};
  std::string path;
  char line[4352];
  while (path.empty() && std::fgets(line, sizeof line, maps) != nullptr) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    int name = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &from, &to, &name) == 2 &&
        from <= here && here < to) {
      path = line + name;
    }
  }
  std::fclose(maps);
  while (!path.empty() && path.back() == '\n') path.pop_back();
  // A file that was replaced since keeps its name, with this behind it.
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

std::string VersionInName(const std::string& path) {
  constexpr std::string_view kStem = "libnvidia-ml.so.";
  const auto at = path.rfind(kStem);
  if (at == std::string::npos) return {};
  std::string version = path.substr(at + kStem.size());
  return version.find('.') == std::string::npos ? std::string() : version;
}

}  // namespace

Library& Library::Get() {
  std::call_once(once, [] { the_library = new Library; });
  return *the_library;
}

Library::Library() : own_path_(OwnPath()), own_version_(VersionInName(own_path_)) {
  handles_.resize(std::size_t{kMaxGpus} * kPerGpu);
  for (unsigned i = 0; i < handles_.size(); ++i) {
    handles_[i] = {.kind = static_cast<HandleSlot::Kind>(i % kPerGpu / kMaxInstances),
                   .index = static_cast<std::uint8_t>(i / kPerGpu),
                   .sub = static_cast<std::uint8_t>(i % kMaxInstances)};
  }
  // A child process is a client of its own.
  pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  OpenMachine();
}

void Library::OpenMachine() {
  machine_.reset();
  client_ = nullptr;
  const auto path = sim_state::FindStateFile(std::filesystem::path(own_path_).parent_path());
  if (!path) return;
  auto machine = Machine::Open(*path);
  if (!machine.ok()) return;
  machine_ = *machine;
  client_ = sim_state::ClaimClient(*machine_);
}

Return Library::Init(unsigned function, bool attach) {
  Count(function);
  {
    const std::scoped_lock lock(mutex_);
    // Another machine may have come up in the same folder.
    if (references_ == 0 && (machine_ == nullptr || !machine_->InPlace())) OpenMachine();
    if (machine_ == nullptr) return kDriverNotLoaded;
  }
  if (const Return fault = Faults(function, -1)) return fault;

  const std::scoped_lock lock(mutex_);
  const std::uint64_t call = machine_->clients().init_calls.fetch_add(1) + 1;
  SessionView view;
  const Return status = machine_->Read([&](const Control& control) {
    const auto& fault = control.init_fault;
    if (fault.code != 0 && call >= fault.from_call &&
        (fault.until_ns == 0 || MonotonicNs() < fault.until_ns)) {
      return static_cast<Return>(fault.code);
    }
    if (control.driver_present == 0) return kDriverNotLoaded;
    if (control.module_mismatch != 0 ||
        (!own_version_.empty() && own_version_ != control.driver_version)) {
      return kVersionMismatch;
    }
    view.epoch = control.driver_epoch;
    view.gpu_count = control.gpu_count;
    view.mig.assign(control.gpu_count, {});
    for (unsigned i = 0; i < control.gpu_count && i < kMaxGpus; ++i) {
      view.order[i] = control.order[i] % kMaxGpus;
      view.mig[i] = control.gpus[view.order[i]].mig;
    }
    return kSuccess;
  });
  if (status != kSuccess) return status;
  if (references_ == 0) {
    if (!lock_.Open(*machine_, client_).ok()) return kDriverNotLoaded;
    if (client_ != nullptr) {
      std::uint32_t slots = 0;
      for (unsigned i = 0; attach && i < view.gpu_count; ++i) slots |= 1U << view.order[i];
      client_->attached.store(slots);
    }
    view_ = std::make_shared<const SessionView>(std::move(view));
  }
  ++references_;
  if (client_ != nullptr) client_->references.store(references_);
  return kSuccess;
}

Return Library::Shutdown() {
  const std::scoped_lock lock(mutex_);
  if (references_ == 0) return kUninitialized;
  --references_;
  if (client_ != nullptr) client_->references.store(references_);
  if (references_ > 0) return kSuccess;
  for (auto& [handle, set] : event_sets_) set->freed.store(true);
  event_sets_.clear();
  view_.reset();
  if (client_ != nullptr) {
    client_->attached.store(0);
    client_->event_sets.store(0);
  }
  lock_.Close();
  return kSuccess;
}

void Library::Count(unsigned function) {
  const std::scoped_lock lock(mutex_);
  if (machine_ == nullptr) return;
  if (forked.exchange(false)) client_ = sim_state::ClaimClient(*machine_);
  machine_->clients().calls[function].fetch_add(1, std::memory_order_relaxed);
  if (client_ != nullptr) client_->calls[function].fetch_add(1, std::memory_order_relaxed);
}

Return Library::Faults(unsigned function, int slot, Play play) const {
  const std::shared_ptr<Machine> machine = this->machine();
  if (machine == nullptr) return kSuccess;
  std::int64_t slept = 0;  // latency is waited out once, however often the rules change meanwhile
  for (;;) {
    const std::uint32_t seen = machine->Changes();
    if (machine->control().rule_count == 0 || machine->control().retired.load() != 0) {
      return kSuccess;
    }
    struct Found {
      std::int64_t latency = 0;
      std::int64_t hang_until = 0;  // 0: no hang
      int error = 0;
    };
    const auto found = machine->Read([&](const Control& control) {
      Found result;
      const std::int64_t now = MonotonicNs();
      for (unsigned i = 0; i < control.rule_count && i < sim_state::kMaxRules; ++i) {
        const Rule& rule = control.rules[i];
        if (rule.function >= 0 && rule.function != static_cast<int>(function)) continue;
        if (rule.gpu >= 0 ? rule.gpu != slot : play == Play::kOfGpuOnly) continue;
        if (rule.until_ns != 0 && rule.until_ns <= now) continue;
        switch (rule.kind) {
          case RuleKind::kLatency:
            if (play != Play::kAllButLatency) result.latency += rule.latency_ns;
            break;
          case RuleKind::kError:
            result.error = rule.code;
            break;
          case RuleKind::kHang:
            result.hang_until = rule.until_ns == 0 ? now + kForever : rule.until_ns;
            break;
          case RuleKind::kMissing:
            result.error = kFunctionNotFound;
            break;
        }
      }
      return result;
    });
    const std::int64_t before = MonotonicNs();
    if (found.hang_until != 0) {
      Wait(*machine, seen, found.hang_until - before);
    } else if (found.latency > slept) {
      Wait(*machine, seen, found.latency - slept);
      slept += MonotonicNs() - before;
    } else {
      return static_cast<Return>(found.error);
    }
  }
}

Return Library::Session(std::shared_ptr<const SessionView>* view) const {
  const std::scoped_lock lock(mutex_);
  if (view_ == nullptr) return kUninitialized;
  const Control& control = machine_->control();
  if (control.retired.load() != 0) return kDriverNotLoaded;
  if (control.driver_present == 0) return static_cast<Return>(control.gone_status);
  if (control.driver_epoch != view_->epoch) return kUninitialized;
  *view = view_;
  return kSuccess;
}

Return Library::AwaitGpu(std::uint32_t slot) const {
  const std::shared_ptr<Machine> machine = this->machine();
  for (;;) {
    const std::uint32_t seen = machine->Changes();
    const auto& gpu = machine->control().gpus[slot];
    const GpuState state = gpu.present != 0 ? gpu.state : GpuState::kLost;
    if (state == GpuState::kLost) return kGpuIsLost;
    if (state == GpuState::kResetRequired) return kResetRequired;
    if (state == GpuState::kOk || machine->control().retired.load() != 0) return kSuccess;
    Wait(*machine, seen, kForever);
  }
}

void Library::Wait(const Machine& machine, std::uint32_t seen, std::int64_t timeout_ns) const {
  waiting_.fetch_add(1);
  machine.WaitForChange(seen, timeout_ns);
  waiting_.fetch_sub(1);
}

std::shared_ptr<Machine> Library::machine() const {
  const std::scoped_lock lock(mutex_);
  return machine_;
}

void Library::Attach(std::uint32_t slots) {
  const std::scoped_lock lock(mutex_);
  if (client_ != nullptr && references_ > 0) client_->attached.fetch_or(slots);
}

Handle Library::ToHandle(HandleSlot::Kind kind, std::uint32_t index, std::uint32_t sub) {
  return &handles_[index * kPerGpu + static_cast<unsigned>(kind) * kMaxInstances + sub];
}

const HandleSlot* Library::Resolve(Handle handle) const {
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  const auto first = reinterpret_cast<std::uintptr_t>(handles_.data());
  if (address < first || (address - first) % sizeof(HandleSlot) != 0) return nullptr;
  const std::size_t position = (address - first) / sizeof(HandleSlot);
  return position < handles_.size() ? &handles_[position] : nullptr;
}

Handle Library::AddEventSet() {
  const std::scoped_lock lock(mutex_);
  auto set = std::make_shared<EventSet>();
  set->cursor = machine_->control().event_head.load();
  const Handle handle = set.get();
  event_sets_[handle] = std::move(set);
  if (client_ != nullptr) client_->event_sets.fetch_add(1);
  return handle;
}

std::shared_ptr<EventSet> Library::FindEventSet(Handle handle) const {
  const std::scoped_lock lock(mutex_);
  const auto found = event_sets_.find(handle);
  return found == event_sets_.end() ? nullptr : found->second;
}

bool Library::RemoveEventSet(Handle handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = event_sets_.find(handle);
  if (found == event_sets_.end()) return false;
  found->second->freed.store(true);
  event_sets_.erase(found);
  if (client_ != nullptr) client_->event_sets.fetch_sub(1);
  return true;
}

}  // namespace ndp::sim_nvml
