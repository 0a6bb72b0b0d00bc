#include "sim_state/sessions.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ndp::sim_state {
namespace {

// Locks lie past the end of the file: they are names, not data. Entry n of `Clients` locks byte
// kLockBase + n; a client that cannot write the state has no entry and locks a byte of the range
// after that, which is shared with others of its kind.
constexpr off_t kLockBase = off_t{1} << 40;
constexpr off_t kAnonymousLock = kLockBase + kMaxClients;

struct flock LockAt(off_t start, off_t length, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = length;
  return lock;
}

bool Locked(int fd, off_t position) {
  struct flock lock = LockAt(position, 1, F_WRLCK);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Ticks since boot at which the process started; 0 where it does not exist.
std::uint64_t StartTime(std::uint32_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  // The command's name, in brackets, may hold blanks; field 22 counts from behind it.
  const char* rest = std::strrchr(text, ')');
  if (rest == nullptr) return 0;
  for (int field = 2; field < 22 && rest != nullptr; ++field) rest = std::strchr(rest + 1, ' ');
  return rest == nullptr ? 0 : std::strtoull(rest + 1, nullptr, 10);
}

void ReadCommand(char (&command)[16]) {
  const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[16] = {};
  const ssize_t size = read(fd, text, sizeof text);
  close(fd);
  SetText(command, std::string_view(text, size > 0 ? static_cast<std::size_t>(size) - 1 : 0));
}

bool Dead(const Client& client) {
  const std::uint64_t start = StartTime(client.pid.load());
  return start == 0 || start != client.start_time.load();
}

void Take(Client& client, std::uint32_t pid, std::uint64_t start) {
  for (auto& count : client.calls) count.store(0, std::memory_order_relaxed);
  client.references.store(0);
  client.attached.store(0);
  client.event_sets.store(0);
  ReadCommand(client.command);
  client.start_time.store(start);
  client.pid.store(pid);
}

}  // namespace

Client* ClaimClient(Machine& machine) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  const std::uint64_t start = StartTime(pid);
  Clients& all = machine.clients();
  for (Client& client : all.clients) {
    if (client.used.load() == 1 && client.pid.load() == pid && client.start_time.load() == start) {
      return &client;
    }
  }
  for (Client& client : all.clients) {
    std::uint32_t free = 0;
    if (client.used.compare_exchange_strong(free, 1)) {
      Take(client, pid, start);
      return &client;
    }
  }
  // Round robin over the dead, so that the most recent ones are remembered longest.
  for (unsigned tries = 0; tries < kMaxClients; ++tries) {
    Client& client = all.clients[all.next_victim.fetch_add(1) % kMaxClients];
    std::uint32_t taken = 1;
    if (!Dead(client) || !client.used.compare_exchange_strong(taken, 2)) continue;
    Take(client, pid, start);
    client.used.store(1);
    return &client;
  }
  return nullptr;
}

Status SessionLock::Open(const Machine& machine, const Client* client) {
  Close();
  const int flags = machine.writable() ? O_RDWR : O_RDONLY;
  fd_ = open(machine.path().c_str(), flags | O_CLOEXEC);
  if (fd_ < 0) return ErrnoError(errno, "open " + machine.path().string());
  const bool own = machine.writable() && client != nullptr;
  const off_t position = own ? kLockBase + (client - machine.clients().clients) : kAnonymousLock;
  struct flock lock = LockAt(position, 1, F_RDLCK);
  if (fcntl(fd_, F_OFD_SETLK, &lock) != 0) {
    const int error = errno;
    Close();
    return ErrnoError(error, "lock " + machine.path().string());
  }
  return {};
}

void SessionLock::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::vector<Session> OpenSessions(const Machine& machine) {
  std::vector<Session> sessions;
  const int fd = open(machine.path().c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return sessions;
  for (unsigned i = 0; i < kMaxClients; ++i) {
    const Client& client = machine.clients().clients[i];
    if (client.used.load() == 0 || !Locked(fd, kLockBase + i)) continue;
    sessions.push_back({.pid = client.pid.load(),
                        .command = client.command,
                        .references = client.references.load(),
                        .attached = client.attached.load(),
                        .event_sets = client.event_sets.load()});
  }
  if (Locked(fd, kAnonymousLock)) {
    sessions.push_back({.command = "(read-only)", .references = 1, .attached = 0xFFFFFFFF});
  }
  close(fd);
  return sessions;
}

std::vector<ClientCalls> CallsByClient(const Machine& machine) {
  std::vector<ClientCalls> result;
  for (const Client& client : machine.clients().clients) {
    if (client.used.load() == 0) continue;
    ClientCalls entry{
        .pid = client.pid.load(), .command = client.command, .alive = !Dead(client), .calls = {}};
    entry.calls.reserve(kFunctionCount);
    for (const auto& count : client.calls) entry.calls.push_back(count.load());
    result.push_back(std::move(entry));
  }
  return result;
}

}  // namespace ndp::sim_state
