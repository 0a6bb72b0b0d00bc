// Who uses a simulated machine. A client process owns one entry of `Clients`; while it has NVML
// initialised it holds a lock on the state file, so that a killed process stops counting at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim_state/machine.h"

namespace ndp::sim_state {

// The calling process's entry, a new one if it has none. Entries of processes that are gone are
// used again when none is free. One thread.
Client* ClaimClient(Machine& machine);

// An open session: descriptor and lock. Closing it (or dying) ends the session.
class SessionLock {
 public:
  SessionLock() = default;
  ~SessionLock() { Close(); }
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;

  Status Open(const Machine& machine, const Client* client);
  void Close();

 private:
  int fd_ = -1;
};

struct Session {
  std::uint32_t pid = 0;
  std::string command;
  std::uint32_t references = 0;
  std::uint32_t attached = 0;  // bit per GPU slot
  std::uint32_t event_sets = 0;
};

// Sessions that are open now. A client without write access to the state shows as pid 0 with all
// GPUs attached.
std::vector<Session> OpenSessions(const Machine& machine);

struct ClientCalls {
  std::uint32_t pid = 0;
  std::string command;
  bool alive = false;
  std::vector<std::uint32_t> calls;  // by function
};

// Every client that is remembered, dead ones too.
std::vector<ClientCalls> CallsByClient(const Machine& machine);

}  // namespace ndp::sim_state
