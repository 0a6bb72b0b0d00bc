// The registration life cycle of one resource at the kubelet: when to register, under which socket
// name, and when to do it again. Pure but for the Host it is given; loop thread only.
//
// How kubelets behave, and so why:
// - Register dials back before it returns: serve first, register second.
// - A starting kubelet removes every socket in its folder, then makes kubelet.sock. It may do so
//   while a Register of ours hangs on a socket that is gone: our sockets are put back at once.
// - A kubelet of 1.37 refuses a path that it believes connected, and may go on to refuse it for
//   ever: a path is used for one Register only. The old path is served until its streams end.
// - A stream that ends means "not registered", whatever the kubelet's socket looks like.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/file.h"

namespace ndp::plugin {

class Registration {
 public:
  // What the machine asks for. None of these may call back into the machine.
  class Host {
   public:
    virtual ~Host() = default;
    // Listens under this file name, with our own file there; nothing to do where it does already.
    // kNotFound: the folder is missing, and told by others.
    virtual Status EnsureSocket(const std::string& endpoint) = 0;
    // Stops listening and removes the file; accepted connections live on.
    virtual void RemoveSocket(const std::string& endpoint) = 0;
    // Connects to the kubelet and keeps the connection for the Register that follows. The identity
    // is that of the kubelet's socket file that was connected to.
    virtual Result<os::FileIdentity> Connect() = 0;
    // Answered by OnRegistered.
    virtual void Register(const std::string& endpoint) = 0;
    // OnRegistered still comes.
    virtual void CancelRegister(const std::string& endpoint) = 0;
    // Sends the full list once more on every stream.
    virtual void Resend() = 0;
  };

  struct Options {
    std::string resource;      // "nvidia.com/gpu"
    bool with_kubelet = true;  // false: serve only, under a fixed name
    std::uint64_t seed = 0;    // of names and jitter
  };

  // How long a registration must last for the next loss to be answered at once again.
  static constexpr Duration kStable = std::chrono::seconds(10);
  static constexpr Duration kFirstConnectDelay = std::chrono::milliseconds(1);
  static constexpr Duration kFirstDelay = std::chrono::milliseconds(50);
  static constexpr Duration kLongestDelay = std::chrono::seconds(5);
  // A list sent at first may have been overruled by a peer that was ending: once more after this.
  static constexpr Duration kResendAfter = std::chrono::seconds(60);
  // A socket is made a little before its Register is sent; who came first is not known closer.
  static constexpr Duration kSameTime = std::chrono::milliseconds(500);
  // The kubelet opens its stream right after Register; without one we are not registered. A
  // kubelet that is merely slow gets twice the time after each registration in vain.
  static constexpr Duration kStreamWithin = std::chrono::seconds(1);
  static constexpr Duration kLongestStreamWithin = std::chrono::seconds(30);
  // A kubelet up to 1.36 that hears of a peer's end after our Register closes our connection for
  // the peer's, without a sign to us: so soon after a peer's end no stream probably means that.
  static constexpr Duration kStreamAfterPeer = std::chrono::milliseconds(30);

  Registration(Host& host, const Clock& clock, Options options);

  void Start();
  // A file of ours has gone from the folder. Other names are ignored.
  void OnSocketVanished(const std::string& endpoint);
  // The kubelet's socket as it is now; by the folder's events and by a slow poll beneath.
  void OnKubeletSocket(const os::FileIdentity& identity);
  void OnRegistered(const std::string& endpoint, const Status& result);
  // `stream` is unique in the process.
  void OnStreamOpened(const std::string& endpoint, std::uint64_t stream);
  void OnStreamEnded(const std::string& endpoint, std::uint64_t stream);
  // Another instance that served this resource has ended; its socket was made then. Where it may
  // have registered after us we register anew: a kubelet up to 1.36 asks the newest registration
  // only, and when that has ended it asks nobody, while our list still counts.
  void OnPeerEnded(WallTime made);
  // Whether all our files are in place; puts back what is not.
  void CheckSockets();
  // When OnTime is to be called next; it may be called at any time.
  std::optional<MonoTime> next() const;
  void OnTime();

  // No further Register; what is open stays. For a resource that is being retired.
  void Cease();
  // Removes all sockets. Nothing happens after it.
  void Stop();

  struct State {
    bool wanted = true;       // with a kubelet at all
    bool registered = false;  // Register succeeded and its stream is open
    std::string endpoint;     // current socket's file name
    std::optional<WallTime> since;
    std::string last_error;  // of the last attempt that failed, until one succeeds
    std::uint64_t registrations = 0;
    std::uint64_t losses = 0;
    bool operator==(const State&) const = default;
  };
  State state() const;
  // Whether the stream stands for a registration, also for an earlier one.
  bool IsKubelets(std::uint64_t stream) const;
  bool owns(const std::string& endpoint) const { return endpoints_.contains(endpoint); }

 private:
  struct Endpoint {
    bool used = false;         // its Register has been sent
    bool registering = false;  // and not answered
    // The stream that stands for the registration: the first one opened after Register was sent.
    std::optional<std::uint64_t> primary;
    std::set<std::uint64_t> streams;
    bool primary_alive() const { return primary && streams.contains(*primary); }
  };
  enum class Phase { kNew, kConnecting, kRegistering, kRegistered, kServing, kCeased, kStopped };

  void Attempt();
  void NewEndpoint();
  void ConnectLater(const Error& error, bool told = false);
  void TryLater(Duration delay);
  void BecomeRegistered();
  void Lose(const std::string& why);
  void DropCurrent();
  void ReleaseIfIdle(const std::string& endpoint);
  Duration Delay(int failures);
  void NoteTrouble(const std::string& message, bool told = false);

  Host& host_;
  const Clock& clock_;
  const Options options_;
  std::mt19937_64 random_;

  Phase phase_ = Phase::kNew;
  std::map<std::string, Endpoint> endpoints_;
  std::string current_;       // key of endpoints_, or empty
  os::FileIdentity kubelet_;  // at the last connect
  os::FileIdentity seen_;     // at the last look
  int failures_ = 0;
  Duration connect_delay_ = kFirstConnectDelay;
  Duration repair_delay_ = kFirstConnectDelay;
  Duration stream_within_ = kStreamWithin;
  // A peer has ended: the next failure may be the kubelet's way of hearing of it, and is retried at
  // once.
  bool excused_ = false;

  std::optional<MonoTime> attempt_at_;
  std::optional<MonoTime> repair_at_;
  std::optional<MonoTime> resend_at_;
  std::optional<MonoTime> stream_by_;

  std::optional<MonoTime> registered_at_;
  WallTime sent_at_{};  // when the last Register was sent
  std::optional<WallTime> since_;
  std::string last_error_;
  std::string logged_error_;
  std::uint64_t registrations_ = 0;
  std::uint64_t losses_ = 0;
};

}  // namespace ndp::plugin
