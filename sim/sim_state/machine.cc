#include "sim_state/machine.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <new>
#include <string>
#include <utility>

namespace ndp::sim_state {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t Now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

std::uint32_t* FutexWord(const std::atomic<std::uint32_t>& word) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(const_cast<std::atomic<std::uint32_t>*>(&word));
}

void WakeAll(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, FutexWord(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Reset(-1); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

}  // namespace

std::int64_t MonotonicNs() { return Now(CLOCK_MONOTONIC); }
std::int64_t RealtimeNs() { return Now(CLOCK_REALTIME); }

std::optional<std::filesystem::path> FindStateFile(const std::filesystem::path& inside) {
  std::error_code error;
  for (std::filesystem::path folder = inside; !folder.empty(); folder = folder.parent_path()) {
    std::filesystem::path candidate = folder / kStatePath;
    if (std::filesystem::is_regular_file(candidate, error)) return candidate;
    if (folder == folder.root_path()) break;
  }
  return std::nullopt;
}

Machine::Machine(std::filesystem::path path, void* base, bool writable)
    : path_(std::move(path)),
      base_(base),
      writable_(writable),
      control_(static_cast<Control*>(base)),
      clients_(reinterpret_cast<Clients*>(static_cast<char*>(base) + kClientsOffset)) {}

Machine::~Machine() { munmap(base_, kStateSize); }

bool Machine::InPlace() const {
  const Fd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t identity = 0;
  return fd.get() >= 0 &&
         pread(fd.get(), &identity, sizeof identity, offsetof(Control, identity)) ==
             sizeof identity &&
         identity == control_->identity;
}

Result<std::shared_ptr<Machine>> Machine::Create(const std::filesystem::path& path) {
  const std::string fresh = path.string() + ".new";
  Fd fd(open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) return ErrnoError(errno, "create " + fresh);
  // Any user's process may be a client, as with the driver's own device nodes.
  fchmod(fd.get(), 0666);
  if (ftruncate(fd.get(), kStateSize) != 0) return ErrnoError(errno, "size " + fresh);
  void* base = mmap(nullptr, kStateSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return ErrnoError(errno, "map " + fresh);
  std::shared_ptr<Machine> machine(new Machine(path, base, true));
  new (base) Control;
  new (machine->clients_) Clients;
  machine->control_->magic = kMagic;
  machine->control_->layout_version = kLayoutVersion;
  machine->control_->size = kStateSize;
  machine->control_->identity = static_cast<std::uint64_t>(RealtimeNs());

  auto old = Open(path);
  if (rename(fresh.c_str(), path.c_str()) != 0) return ErrnoError(errno, "rename " + fresh);
  if (old.ok() && (*old)->writable()) {
    (*old)->control_->retired.store(1);
    WakeAll((*old)->control_->change);
  }
  return machine;
}

Result<std::shared_ptr<Machine>> Machine::Open(const std::filesystem::path& path) {
  bool writable = true;
  Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0 && (errno == EROFS || errno == EACCES || errno == EPERM)) {
    writable = false;
    fd.Reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (fd.get() < 0) return ErrnoError(errno, "open " + path.string());
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) return ErrnoError(errno, "stat " + path.string());
  if (status.st_size != static_cast<off_t>(kStateSize)) {
    return Error(Code::kInvalidArgument,
                 path.string() + ": not a state file of this version of ndp-sim");
  }
  const int sharing = writable ? MAP_SHARED : MAP_PRIVATE;
  void* base = mmap(nullptr, kStateSize, PROT_READ | PROT_WRITE, sharing, fd.get(), 0);
  if (base == MAP_FAILED) return ErrnoError(errno, "map " + path.string());
  std::shared_ptr<Machine> machine(new Machine(path, base, writable));
  // The control pages are only read, so that they go on following the file.
  if (!writable &&
      mmap(base, kClientsOffset, PROT_READ, MAP_SHARED | MAP_FIXED, fd.get(), 0) == MAP_FAILED) {
    return ErrnoError(errno, "map " + path.string());
  }
  if (machine->control_->magic != kMagic || machine->control_->layout_version != kLayoutVersion) {
    return Error(Code::kInvalidArgument,
                 path.string() + ": not a state file of this version of ndp-sim");
  }
  return machine;
}

std::uint32_t Machine::StableSequence(int attempt) const {
  for (int spin = 0;; ++spin) {
    const std::uint32_t sequence = control_->sequence.load(std::memory_order_acquire);
    // A sequence that stays odd belongs to a writer that was killed: its write is as good as done.
    if (sequence % 2 == 0 || spin + attempt >= kMaxAttempts) return sequence;
    const timespec pause{.tv_sec = 0, .tv_nsec = 5000};
    nanosleep(&pause, nullptr);
  }
}

Machine::WriteLock::~WriteLock() {
  if (fd_ >= 0) close(fd_);
}

Result<Machine::WriteLock> Machine::LockForWrite() const {
  if (!writable_) return Error(Code::kPermissionDenied, path_.string() + ": not writable");
  // A description of its own: flock excludes other threads of this process as well.
  Fd fd(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoError(errno, "open " + path_.string());
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoError(errno, "lock " + path_.string());
  }
  return WriteLock(fd.Release());
}

void Machine::BeginWrite() {
  const std::uint32_t sequence = control_->sequence.load(std::memory_order_relaxed);
  control_->sequence.store(sequence | 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
}

void Machine::EndWrite() {
  const std::uint32_t sequence = control_->sequence.load(std::memory_order_relaxed);
  control_->sequence.store(sequence + 1, std::memory_order_release);
  WakeAll(control_->change);
}

void Machine::WaitForChange(std::uint32_t seen, std::int64_t timeout_ns) const {
  if (timeout_ns <= 0) return;
  const timespec timeout{.tv_sec = timeout_ns / kSecond, .tv_nsec = timeout_ns % kSecond};
  syscall(SYS_futex, FutexWord(control_->change), FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void Machine::PushEvent(Control& control, const Event& event) {
  const std::uint64_t head = control.event_head.load(std::memory_order_relaxed);
  control.events[head % kEventRing] = event;
  control.event_head.store(head + 1, std::memory_order_release);
}

std::optional<Event> Machine::EventAt(std::uint64_t position) const {
  if (position >= control_->event_head.load(std::memory_order_acquire)) return std::nullopt;
  const Event event = control_->events[position % kEventRing];
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t head = control_->event_head.load(std::memory_order_relaxed);
  // The writer fills entry `head` before it moves on, so that one may be half written, too.
  if (head >= position + kEventRing) return std::nullopt;
  return event;
}

}  // namespace ndp::sim_state
