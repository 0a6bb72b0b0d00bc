#include "web/server.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <fcntl.h>

#include <list>
#include <string_view>

#include "doc/json.h"
#include "metrics/registry.h"
#include "web/listen.h"
#include "web/page.h"

namespace ndp::web {
namespace {

constexpr int kMaxHeaderBytes = 8 * 1024;
constexpr int kMaxBodyBytes = 1024;  // a GET has none
constexpr int kIdleSeconds = 10;
constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr std::string_view kNotFound =
    "not found; there are: / /livez /readyz /metrics /status.json\n";

struct Reply {
  int code = HTTP_OK;
  std::string_view type = kPlain;
  std::string body;
};

const char* Reason(int code) {
  switch (code) {
    case HTTP_OK:
      return "OK";
    case HTTP_NOTFOUND:
      return "Not Found";
    case HTTP_BADMETHOD:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

Reply ToReply(const Status& status) {
  if (status.ok()) return {.body = "ok\n"};
  return {.code = HTTP_SERVUNAVAIL, .body = status.error().message() + "\n"};
}

void Send(evhttp_request* request, const Reply& reply) {
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", std::string(reply.type).c_str());
  evhttp_add_header(headers, "Content-Length", std::to_string(reply.body.size()).c_str());
  evhttp_add_header(headers, "Cache-Control", "no-store");
  evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  evhttp_add_header(headers, "Content-Security-Policy",
                    "default-src 'none'; style-src 'unsafe-inline'");
  if (reply.code == HTTP_BADMETHOD) evhttp_add_header(headers, "Allow", "GET, HEAD");
  if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD) {
    evbuffer_add(evhttp_request_get_output_buffer(request), reply.body.data(), reply.body.size());
  }
  evhttp_send_reply(request, reply.code, Reason(reply.code), nullptr);
}

}  // namespace

struct Server::State : std::enable_shared_from_this<State> {
  // Asked /livez and has no answer yet. libevent keeps the request until it is answered: it does
  // not read from a connection whose request is being handled.
  struct Waiting {
    evhttp_request* request = nullptr;
    os::EventLoop::Handle limit;
  };

  os::EventLoop& loop;
  Sources sources;
  Listening listening;
  std::list<Waiting> waiting;
  evhttp* http = nullptr;

  State(os::EventLoop& the_loop, Sources the_sources)
      : loop(the_loop), sources(std::move(the_sources)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (http != nullptr) evhttp_free(http);
  }

  void OnRequest(evhttp_request* request);
  void Live(evhttp_request* request);
  void AnswerLive(std::list<Waiting>::iterator at, const Status& status);
  Reply Answer(std::string_view path);
};

void Server::State::OnRequest(evhttp_request* request) {
  const auto command = evhttp_request_get_command(request);
  if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD) {
    Send(request, {.code = HTTP_BADMETHOD, .body = "only GET and HEAD\n"});
    return;
  }
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
  const char* path = uri != nullptr ? evhttp_uri_get_path(uri) : nullptr;
  if (path == nullptr) path = "";
  if (std::string_view(path) == "/livez") {
    Live(request);
  } else {
    Send(request, Answer(path));
  }
}

void Server::State::Live(evhttp_request* request) {
  const auto at = waiting.insert(waiting.end(), Waiting{.request = request, .limit = {}});
  at->limit = loop.After(sources.live_limit, [this, at] {
    AnswerLive(at, Error(Code::kDeadlineExceeded, "a thread does not answer"));
  });
  sources.live([self = weak_from_this(), at, answered = false](const Status& status) mutable {
    const auto state = self.lock();
    if (!state || std::exchange(answered, true)) return;
    // The limit may have answered already.
    for (auto it = state->waiting.begin(); it != state->waiting.end(); ++it) {
      if (it == at) return state->AnswerLive(at, status);
    }
  });
}

void Server::State::AnswerLive(std::list<Waiting>::iterator at, const Status& status) {
  evhttp_request* request = at->request;
  waiting.erase(at);
  Send(request, ToReply(status));
}

Reply Server::State::Answer(std::string_view path) {
  if (path == "/readyz") return ToReply(sources.ready());
  if (path == "/metrics") return {.type = metrics::kTextContentType, .body = sources.metrics()};
  if (path == "/status.json") {
    return {.type = "application/json", .body = doc::ToJson(sources.status(), 2) + "\n"};
  }
  if (path == "/" || path.empty()) {
    return {.type = "text/html; charset=utf-8",
            .body = RenderPage(sources.status(), sources.ready())};
  }
  return {.code = HTTP_NOTFOUND, .body = std::string(kNotFound)};
}

Server::Server(std::shared_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;
int Server::port() const { return state_->listening.port; }

Result<std::unique_ptr<Server>> Server::Open(os::EventLoop& loop, const Address& address,
                                             Sources sources) {
  auto state = std::make_shared<State>(loop, std::move(sources));
  NDP_TRY(state->listening, Listen(address));
  state->http = evhttp_new(static_cast<event_base*>(loop.native()));
  if (state->http == nullptr) return Error(Code::kInternal, "start web server: out of memory");
  evhttp_set_max_headers_size(state->http, kMaxHeaderBytes);
  evhttp_set_max_body_size(state->http, kMaxBodyBytes);
  evhttp_set_timeout(state->http, kIdleSeconds);
  // All of them come to us: libevent's own refusal is 501, which says something else.
  evhttp_set_allowed_methods(state->http, 0xFFFF);
  evhttp_set_gencb(
      state->http,
      [](evhttp_request* request, void* self) { static_cast<State*>(self)->OnRequest(request); },
      state.get());

  // libevent closes what it accepts from.
  for (os::UniqueFd& fd : state->listening.tcp) {
    if (evhttp_accept_socket(state->http, fd.get()) != 0) {
      return Error(Code::kInternal, "start web server: libevent refuses the socket");
    }
    static_cast<void>(fd.Release());
  }
  if (state->listening.unix_socket) {
    os::UniqueFd copy(fcntl(state->listening.unix_socket->fd(), F_DUPFD_CLOEXEC, 0));
    if (!copy || evhttp_accept_socket(state->http, copy.get()) != 0) {
      return Error(Code::kInternal, "start web server: libevent refuses the socket");
    }
    static_cast<void>(copy.Release());
  }
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

}  // namespace ndp::web
