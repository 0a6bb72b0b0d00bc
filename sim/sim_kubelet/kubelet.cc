#include "sim_kubelet/kubelet.h"

#include "sim_kubelet/claim.h"
#include "sim_kubelet/session.h"

namespace ndp::sim_kubelet {
namespace {

// Other files stay, as with the real one.
int RemoveSockets(const std::filesystem::path& folder) {
  int removed = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.is_socket(ignored) || entry.path().filename() == kControlSocket) continue;
    if (std::filesystem::remove(entry.path(), ignored)) ++removed;
  }
  return removed;
}

}  // namespace

Kubelet::Kubelet(os::EventLoop& loop, Options options, EventLog& log)
    : loop_(loop), options_(std::move(options)), log_(log) {}

Kubelet::~Kubelet() { Stop(false); }

Status Kubelet::Start() {
  if (running()) return Error(Code::kInvalidArgument, "the kubelet runs already");
  NDP_TRY(MakeKubeletFolder(options_.folder));
  log_.Write("started", {{"sockets_removed", RemoveSockets(options_.folder)}});

  auto session =
      std::make_shared<Session>(Session::Deps{.options = options_,
                                              .log = log_,
                                              .next_register =
                                                  [this] {
                                                    const std::lock_guard lock(mutex_);
                                                    NextRegister next;
                                                    if (fault_.delay > 0) {
                                                      --fault_.delay;
                                                      next.delay = fault_.by;
                                                    }
                                                    if (fault_.refuse > 0) {
                                                      --fault_.refuse;
                                                      next.refusal = fault_.message;
                                                    }
                                                    return next;
                                                  },
                                              .crash =
                                                  [this](const std::string& why) {
                                                    log_.Write("crashed", {{"why", why}});
                                                    loop_.Post([this] { Stop(true); });
                                                  }});
  NDP_TRY(session->Listen(loop_));
  const std::lock_guard lock(mutex_);
  session_ = std::move(session);
  return {};
}

void Kubelet::Stop(bool leave_socket) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    session.swap(session_);
  }
  if (!session) return;
  session->Stop(leave_socket);
  log_.Write("stopped", {});
}

bool Kubelet::running() const {
  const std::lock_guard lock(mutex_);
  return session_ != nullptr;
}

void Kubelet::RemoveCheckpoint() const {
  std::error_code ignored;
  std::filesystem::remove(options_.folder / kCheckpointFile, ignored);
}

Result<std::shared_ptr<Kubelet::Session>> Kubelet::Current() const {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr) return Error(Code::kUnavailable, "the kubelet does not run");
  return session_;
}

Result<doc::Value> Kubelet::Admit(const ContainerRequest& request) {
  NDP_TRY(const auto session, Current());
  return session->Admit(request);
}

Status Kubelet::ReleasePod(const std::string& pod, bool keep_checkpoint) {
  NDP_TRY(const auto session, Current());
  return session->ReleasePod(pod, keep_checkpoint);
}

Result<doc::Value> Kubelet::CallPreferred(const std::string& resource,
                                          std::optional<std::vector<std::string>> available,
                                          const std::vector<std::string>& must_include, int size) {
  NDP_TRY(const auto session, Current());
  NDP_TRY(const auto client, session->ClientOf(resource));
  if (!available) available = session->HealthyOf(resource);
  NDP_TRY(const std::vector<std::string> ids,
          client->Preferred({.available = *available, .must_include = must_include}, size));
  doc::Value answer = doc::Value::Map();
  doc::Value& list = answer.Set("devices", doc::Value::List());
  for (const std::string& id : ids) list.Append(id);
  return answer;
}

Result<doc::Value> Kubelet::CallAllocate(const std::string& resource,
                                         const std::vector<std::string>& ids) {
  NDP_TRY(const auto session, Current());
  NDP_TRY(const auto client, session->ClientOf(resource));
  NDP_TRY(AllocateAnswer allocated, client->Allocate(ids));
  doc::Value answer = doc::Value::Map();
  answer.Set("response", std::move(allocated.json));
  return answer;
}

Result<std::filesystem::path> Kubelet::SocketOf(const std::string& resource) const {
  NDP_TRY(const auto session, Current());
  NDP_TRY(const std::string endpoint, session->EndpointOf(resource));
  return options_.folder / endpoint;
}

Status Kubelet::DropStream(const std::string& resource, const std::string& endpoint) {
  NDP_TRY(const auto session, Current());
  return session->DropStream(resource, endpoint);
}

void Kubelet::SetRegisterFault(const RegisterFault& fault) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
}

doc::Value Kubelet::Describe() const {
  const auto session = Current();
  doc::Value json = session.ok() ? (*session)->Describe() : doc::Value::Map();
  json.Set("running", session.ok());
  return json;
}

Status Kubelet::WaitFor(const Condition& condition, Duration limit) const {
  NDP_TRY(const auto session, Current());
  return session->WaitFor(condition, limit);
}

}  // namespace ndp::sim_kubelet
