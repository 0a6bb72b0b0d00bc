#include "plugin/registration.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "plugin/socket_name.h"

namespace ndp::plugin {
namespace {

// Of a socket that cannot be made. Who watches the folder tells it once, for all resources.
bool IsFolderMissing(const Status& made) { return made.error().code() == Code::kNotFound; }

}  // namespace

Registration::Registration(Host& host, const Clock& clock, Options options)
    : host_(host), clock_(clock), options_(std::move(options)), random_(options_.seed) {}

void Registration::Start() {
  NDP_CHECK(phase_ == Phase::kNew);
  phase_ = Phase::kConnecting;
  Attempt();
}

// One try of all there is to do, from socket to Register.
void Registration::Attempt() {
  attempt_at_.reset();
  phase_ = Phase::kConnecting;
  if (current_.empty()) NewEndpoint();
  if (const Status made = host_.EnsureSocket(current_); !made.ok()) {
    return ConnectLater(made.error(), IsFolderMissing(made));
  }
  if (!options_.with_kubelet) {
    connect_delay_ = kFirstConnectDelay;
    phase_ = Phase::kServing;
    log::Info("serving without a kubelet", {{"resource", options_.resource}, {"socket", current_}});
    return;
  }
  const auto identity = host_.Connect();
  if (!identity.ok()) return ConnectLater(identity.error());
  connect_delay_ = kFirstConnectDelay;
  kubelet_ = *identity;
  seen_ = *identity;
  Endpoint& endpoint = endpoints_.at(current_);
  endpoint.used = true;
  endpoint.registering = true;
  phase_ = Phase::kRegistering;
  sent_at_ = clock_.Wall();
  host_.Register(current_);
}

void Registration::NewEndpoint() {
  do {
    current_ =
        options_.with_kubelet
            ? RegistrationSocketName(options_.resource, static_cast<std::uint32_t>(random_() >> 32))
            : FixedSocketName(options_.resource);
  } while (!endpoints_.try_emplace(current_).second);
}

void Registration::ConnectLater(const Error& error, bool told) {
  NoteTrouble(error.message(), told);
  TryLater(connect_delay_);
  connect_delay_ = std::min<Duration>(connect_delay_ * 2, kLongestDelay);
}

void Registration::TryLater(Duration delay) {
  phase_ = Phase::kConnecting;
  attempt_at_ = clock_.Now() + delay;
}

// 0 for the first, then 50 ms doubled up to 5 s, each with a fifth of jitter: the resources of a
// node must not all knock at the same moment.
Duration Registration::Delay(int failures) {
  if (failures == 0) return Duration::zero();
  const Duration base =
      std::min<Duration>(kFirstDelay * (1LL << std::min(failures - 1, 10)), kLongestDelay);
  const auto fifth = static_cast<std::int64_t>(base.count() / 5);
  return base + Duration(std::uniform_int_distribution<std::int64_t>(-fifth, fifth)(random_));
}

void Registration::OnRegistered(const std::string& name, const Status& result) {
  const auto at = endpoints_.find(name);
  if (at == endpoints_.end()) return;
  Endpoint& endpoint = at->second;
  endpoint.registering = false;
  if (name != current_ || phase_ != Phase::kRegistering) return ReleaseIfIdle(name);

  // The stream is the proof: a kubelet that was slow may have taken us after the deadline.
  if (result.ok() || endpoint.primary_alive()) return BecomeRegistered();
  const bool excused = std::exchange(excused_, false);
  NoteTrouble(result.error().message(), excused);
  DropCurrent();
  if (excused) return Attempt();
  ++failures_;
  TryLater(Delay(failures_));
}

void Registration::BecomeRegistered() {
  phase_ = Phase::kRegistered;
  ++registrations_;
  registered_at_ = clock_.Now();
  since_ = clock_.Wall();
  last_error_.clear();
  logged_error_.clear();
  resend_at_ = clock_.Now() + kResendAfter;
  log::Info("registered", {{"resource", options_.resource}, {"endpoint", current_}});
  const Endpoint& endpoint = endpoints_.at(current_);
  if (!endpoint.primary) {
    stream_by_ = clock_.Now() + stream_within_;
    stream_within_ = std::min<Duration>(stream_within_ * 2, kLongestStreamWithin);
  } else if (!endpoint.primary_alive()) {
    Lose("the kubelet's stream ended while registering");
  }
}

void Registration::OnStreamOpened(const std::string& name, std::uint64_t stream) {
  const auto at = endpoints_.find(name);
  if (at == endpoints_.end()) return;
  Endpoint& endpoint = at->second;
  endpoint.streams.insert(stream);
  if (!endpoint.used || endpoint.primary) return;
  endpoint.primary = stream;
  if (name != current_) return;
  stream_by_.reset();
  stream_within_ = kStreamWithin;
}

void Registration::OnStreamEnded(const std::string& name, std::uint64_t stream) {
  const auto at = endpoints_.find(name);
  if (at == endpoints_.end()) return;
  Endpoint& endpoint = at->second;
  endpoint.streams.erase(stream);
  if (name == current_ && phase_ == Phase::kRegistered && endpoint.primary == stream) {
    return Lose("the kubelet's stream ended");
  }
  ReleaseIfIdle(name);
}

void Registration::Lose(const std::string& why) {
  ++losses_;
  log::Warning("registration lost", {{"resource", options_.resource}, {"why", why}});
  if (clock_.Now() - *registered_at_ >= kStable) failures_ = 0;
  DropCurrent();
  if (std::exchange(excused_, false)) return Attempt();
  const Duration delay = Delay(failures_++);
  if (delay == Duration::zero()) return Attempt();
  TryLater(delay);
}

// Another path is used from here on.
void Registration::DropCurrent() {
  const std::string old = std::exchange(current_, {});
  registered_at_.reset();
  since_.reset();
  resend_at_.reset();
  stream_by_.reset();
  ReleaseIfIdle(old);
}

void Registration::ReleaseIfIdle(const std::string& name) {
  const auto at = endpoints_.find(name);
  if (at == endpoints_.end() || name == current_) return;
  if (at->second.registering || !at->second.streams.empty()) return;
  host_.RemoveSocket(name);
  endpoints_.erase(at);
}

void Registration::OnKubeletSocket(const os::FileIdentity& identity) {
  const bool is_new = identity != seen_;
  seen_ = identity;
  switch (phase_) {
    case Phase::kConnecting:
      if (!is_new) return;
      break;
    case Phase::kRegistering:
    case Phase::kRegistered:
      // Its streams may not be known to have ended yet; a new kubelet does not wait for that.
      if (identity == kubelet_) return;
      if (phase_ == Phase::kRegistering) host_.CancelRegister(current_);
      DropCurrent();
      break;
    default:
      return;
  }
  failures_ = 0;
  connect_delay_ = kFirstConnectDelay;
  Attempt();
}

void Registration::OnSocketVanished(const std::string& name) {
  if (endpoints_.contains(name)) CheckSockets();
}

void Registration::CheckSockets() {
  if (phase_ == Phase::kNew || phase_ == Phase::kStopped) return;
  repair_at_.reset();
  for (const auto& [name, endpoint] : endpoints_) {
    const Status made = host_.EnsureSocket(name);
    if (made.ok()) continue;
    NoteTrouble(made.error().message(), IsFolderMissing(made));
    repair_at_ = clock_.Now() + repair_delay_;
  }
  repair_delay_ =
      repair_at_ ? std::min<Duration>(repair_delay_ * 2, kLongestDelay) : kFirstConnectDelay;
}

void Registration::OnPeerEnded(WallTime made) {
  if (phase_ != Phase::kRegistering && phase_ != Phase::kRegistered) return;
  if (phase_ == Phase::kRegistering || made + kSameTime < sent_at_) return host_.Resend();
  log::Info("registering anew: a newer instance has ended", {{"resource", options_.resource}});
  stream_within_ = kStreamAfterPeer;
  excused_ = true;
  DropCurrent();
  Attempt();
}

std::optional<MonoTime> Registration::next() const {
  std::optional<MonoTime> first;
  for (const auto& time : {attempt_at_, repair_at_, resend_at_, stream_by_}) {
    if (time && (!first || *time < *first)) first = time;
  }
  return first;
}

void Registration::OnTime() {
  const MonoTime now = clock_.Now();
  const auto due = [now](std::optional<MonoTime>& time) {
    if (!time || *time > now) return false;
    time.reset();
    return true;
  };
  if (due(repair_at_)) CheckSockets();
  if (due(resend_at_)) host_.Resend();
  if (due(stream_by_)) Lose("the kubelet opened no stream");
  if (due(attempt_at_)) Attempt();
}

void Registration::Cease() {
  if (phase_ == Phase::kStopped) return;
  if (phase_ == Phase::kRegistering) host_.CancelRegister(current_);
  phase_ = Phase::kCeased;
  attempt_at_.reset();
  resend_at_.reset();
  stream_by_.reset();
}

void Registration::Stop() {
  Cease();
  phase_ = Phase::kStopped;
  repair_at_.reset();
  current_.clear();
  for (const auto& [name, endpoint] : std::exchange(endpoints_, {})) host_.RemoveSocket(name);
}

bool Registration::IsKubelets(std::uint64_t stream) const {
  return std::ranges::any_of(
      endpoints_, [stream](const auto& entry) { return entry.second.primary == stream; });
}

Registration::State Registration::state() const {
  State state{.wanted = options_.with_kubelet,
              .endpoint = current_,
              .since = since_,
              .last_error = last_error_,
              .registrations = registrations_,
              .losses = losses_};
  const auto at = endpoints_.find(current_);
  state.registered =
      phase_ == Phase::kRegistered && at != endpoints_.end() && at->second.primary_alive();
  return state;
}

// The same trouble again and again is one warning; `told`: by somebody else.
void Registration::NoteTrouble(const std::string& message, bool told) {
  last_error_ = message;
  const bool known = told || message == logged_error_;
  logged_error_ = message;
  log::Write(known ? log::Level::kDebug : log::Level::kWarning, "cannot register yet",
             {{"resource", options_.resource}, {"error", message}});
}

}  // namespace ndp::plugin
