#include "rpc/resource_server.h"

#include <algorithm>
#include <random>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "plugin/socket_name.h"

namespace ndp::rpc {
namespace {

// Versions whose list may still be on its way; streams gather changes, so few are ever needed.
constexpr std::size_t kVersionsKept = 8;

std::vector<std::string> FileNames(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

std::uint64_t Seed() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

std::unique_ptr<ResourceServer> ResourceServer::Start(
    std::shared_ptr<const plugin::ResourceView> view, Options options, Deps deps) {
  std::unique_ptr<ResourceServer> server(
      new ResourceServer(std::move(view), std::move(options), deps));
  server->LookForPeers();
  server->registration_.Start();
  server->ProbePeers();
  server->Settle();
  return server;
}

ResourceServer::ResourceServer(std::shared_ptr<const plugin::ResourceView> view, Options options,
                               Deps deps)
    : options_(std::move(options)),
      deps_(deps),
      metrics_(deps.metrics, view->name()),
      view_(std::move(view)),
      registration_(*this, deps.clock,
                    {.resource = view_->name(),
                     .with_kubelet = !options_.kubelet_socket.empty(),
                     .seed = Seed()}),
      peer_lines_(deps.loop, options_.socket_dir,
                  [this](const std::string& name) { OnPeerLineBroken(name); }),
      self_(std::make_shared<ResourceServer*>(this)),
      server_(std::make_unique<PluginServer>(
          view_, deps.clock, metrics_,
          [post = deps.loop.poster(),
           weak = std::weak_ptr<ResourceServer*>(self_)](ServerEvent event) {
            post.Post([weak, event = std::move(event)] {
              if (const auto self = weak.lock()) (*self)->OnServerEvent(event);
            });
          })) {
  offered_.emplace(1, view_);
}

ResourceServer::~ResourceServer() {
  self_.reset();
  registration_.Stop();
  server_.reset();
  metrics_.registered.Set(0);
}

void ResourceServer::Update(std::shared_ptr<const plugin::ResourceView> view) {
  view_ = std::move(view);
  if (shown_) shown_ = view_;
  offered_.insert_or_assign(server_->Show(view_), view_);
  while (offered_.size() > kVersionsKept) offered_.erase(offered_.begin());
}

void ResourceServer::Resend() {
  offered_.insert_or_assign(server_->Resend(), view_);
  while (offered_.size() > kVersionsKept) offered_.erase(offered_.begin());
}

void ResourceServer::Retire(std::function<void()> done) {
  retired_ = std::move(done);
  registration_.Cease();
  server_->Retire();
  retire_timer_ = deps_.loop.After(kRetireWithin, [this] { FinishRetiring(); });
}

void ResourceServer::FinishRetiring() {
  if (!retired_) return;
  log::Info("resource retired", {{"resource", resource()}});
  retire_timer_.Cancel();
  registration_.Stop();
  const auto done = std::exchange(retired_, nullptr);
  done();  // `this` may be gone
}

void ResourceServer::OnServerEvent(const ServerEvent& event) {
  bool changed = false;
  if (const auto* opened = std::get_if<StreamOpened>(&event)) {
    streams_.insert(opened->stream);
    registration_.OnStreamOpened(opened->endpoint, opened->stream);
  } else if (const auto* ended = std::get_if<StreamEnded>(&event)) {
    streams_.erase(ended->stream);
    // A kubelet that begins anew has had nothing as Unhealthy yet.
    if (registration_.IsKubelets(ended->stream)) unhealthy_.Forget();
    registration_.OnStreamEnded(ended->endpoint, ended->stream);
  } else if (const auto* sent = std::get_if<ListSent>(&event)) {
    const auto at = offered_.find(sent->version);
    if (at != offered_.end() && registration_.IsKubelets(sent->stream)) {
      unhealthy_.OnSent(*at->second, deps_.clock.Now());
      changed = true;
    }
  } else if (const auto* registered = std::get_if<Registered>(&event)) {
    const auto late = deadlines_.extract(registered->endpoint);
    const bool in_time = late.empty() || late.mapped() || registered->result.ok();
    registration_.OnRegistered(
        registered->endpoint,
        in_time ? registered->result
                : Error(Code::kDeadlineExceeded, "register: the kubelet has not answered"));
  } else if (std::holds_alternative<Retired>(event)) {
    return FinishRetiring();
  }
  Settle(changed);
}

void ResourceServer::OnFolderEvent(os::DirWatch::Change change, std::string_view name) {
  using Change = os::DirWatch::Change;
  if (change == Change::kLookAgain) {
    Poll();
    return;
  }
  if (change == Change::kWritten) return;
  const bool appeared = change == Change::kCreated || change == Change::kMovedIn;
  const std::string file(name);
  if (file == options_.kubelet_socket.filename()) {
    if (appeared) LookAtKubeletSocket();
  } else if (registration_.owns(file)) {
    if (!appeared) registration_.OnSocketVanished(file);
  } else if (plugin::ServesResource(file, resource())) {
    if (appeared) {
      NotePeer(file);
    } else {
      peer_lines_.Drop(file);
      if (const auto made = peers_.Vanished(file)) registration_.OnPeerEnded(*made);
    }
  } else {
    return;
  }
  Settle();
}

void ResourceServer::Poll() {
  registration_.CheckSockets();
  LookAtKubeletSocket();
  LookForPeers();
  ProbePeers();
  Settle();
}

void ResourceServer::LookAtKubeletSocket() {
  if (options_.kubelet_socket.empty()) return;
  const auto identity = os::Identify(options_.kubelet_socket);
  if (identity.ok()) registration_.OnKubeletSocket(*identity);
}

void ResourceServer::NotePeer(const std::string& name) {
  const auto identity = os::Identify(options_.socket_dir / name);
  if (!identity.ok()) return;
  peers_.Appeared(name, WallTime(Duration(identity->modified_ns)));
  peer_lines_.Drop(name);
  peer_lines_.Hold(name);  // where it fails, the peer may be about to listen: a probe tells
}

void ResourceServer::LookForPeers() {
  for (const std::string& name : FileNames(options_.socket_dir)) {
    if (plugin::ServesResource(name, resource()) && !registration_.owns(name) &&
        !peers_.Knows(name)) {
      NotePeer(name);
    }
  }
}

void ResourceServer::ProbePeers() {
  peer_lines_.Refresh();
  std::optional<WallTime> newest;  // of those that have ended
  for (const std::string& name : peers_.Living()) {
    const auto made = peers_.Probed(name, peer_lines_.Hold(name));
    if (made && (!newest || *made > *newest)) newest = made;
  }
  if (newest) registration_.OnPeerEnded(*newest);
}

void ResourceServer::OnPeerLineBroken(const std::string& name) {
  const auto made = peers_.Probed(name, peer_lines_.Hold(name));
  if (made) registration_.OnPeerEnded(*made);
  Settle();
}

void ResourceServer::Ping(std::function<void()> pong) {
  server_->Ping([post = deps_.loop.poster(), weak = std::weak_ptr<ResourceServer*>(self_),
                 pong = std::move(pong)] {
    post.Post([weak, pong] {
      if (!weak.expired()) pong();
    });
  });
}

void ResourceServer::Settle(bool changed) {
  timer_.Cancel();
  if (const auto next = registration_.next()) {
    const Duration delay = std::max(Duration::zero(), *next - deps_.clock.Now());
    timer_ = deps_.loop.After(delay, [this] {
      registration_.OnTime();
      Settle();
    });
  }
  if (!peers_.any_living()) {
    probe_timer_.Cancel();
  } else if (!probe_timer_) {
    probe_timer_ = deps_.loop.Every(options_.peer_probe, [this] {
      ProbePeers();
      Settle();
    });
  }

  const auto state = registration_.state();
  if (state != last_state_) {
    changed = true;
    metrics_.registered.Set(state.registered ? 1 : 0);
    metrics_.registrations.Increment(state.registrations - last_state_.registrations);
    metrics_.registrations_lost.Increment(state.losses - last_state_.losses);
    last_state_ = state;
  }
  if (changed) options_.on_change();
}

Status ResourceServer::EnsureSocket(const std::string& endpoint) {
  const auto at = listeners_.find(endpoint);
  if (at != listeners_.end()) return at->second->PutBack();
  NDP_TRY(auto listener,
          os::UnixListener::Open(deps_.loop, {.path = options_.socket_dir / endpoint},
                                 [this, endpoint](os::UniqueFd connection) {
                                   server_->Adopt(std::move(connection), endpoint);
                                 }));
  listeners_.emplace(endpoint, std::move(listener));
  return {};
}

void ResourceServer::RemoveSocket(const std::string& endpoint) { listeners_.erase(endpoint); }

Result<os::FileIdentity> ResourceServer::Connect() {
  NDP_TRY(os::IdentifiedConnection kubelet, os::ConnectUnixIdentified(options_.kubelet_socket));
  kubelet_ = std::move(kubelet.fd);
  return kubelet.file;
}

void ResourceServer::Register(const std::string& endpoint) {
  shown_ = view_;
  server_->Register(std::move(kubelet_), endpoint);
  deadlines_[endpoint] = deps_.loop.After(options_.register_within, [this, endpoint] {
    deadlines_[endpoint].Cancel();
    server_->CancelRegister(endpoint);
  });
}

void ResourceServer::CancelRegister(const std::string& endpoint) {
  server_->CancelRegister(endpoint);
}

std::size_t RemoveDeadSockets(const std::filesystem::path& socket_dir) {
  std::size_t removed = 0;
  for (const std::string& name : FileNames(socket_dir)) {
    if (!plugin::IsRegistrationSocket(name)) continue;
    const std::filesystem::path path = socket_dir / name;
    const auto connection = os::ConnectUnix(path);
    if (connection.ok() || connection.error().code() != Code::kUnavailable) continue;
    std::error_code error;
    if (!std::filesystem::remove(path, error)) continue;
    ++removed;
    log::Info("removed a socket that nobody listens on", {{"socket", path.string()}});
  }
  return removed;
}

bool AnyoneServes(const std::filesystem::path& socket_dir) {
  return std::ranges::any_of(FileNames(socket_dir), [&](const std::string& name) {
    return plugin::IsPluginSocket(name) && os::SomebodyListens(os::ConnectUnix(socket_dir / name));
  });
}

}  // namespace ndp::rpc
