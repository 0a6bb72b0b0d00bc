#include "web/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>

#include "metrics/registry.h"
#include "os/unix_socket.h"
#include "testing/result_matchers.h"
#include "testing/run_until.h"
#include "testing/temp_dir.h"

namespace ndp::web {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = Server::Open(*loop_, TcpAddress{"127.0.0.1", 0}, MakeSources());
    ASSERT_THAT(server, IsOk());
    server_ = std::move(*server);
  }

  Sources MakeSources() {
    return {.live = [this](const std::function<void(Status)>& done) { live_(done); },
            .ready = [this] { return ready_; },
            .metrics = [this] { return registry_.Text(); },
            .status =
                [] {
                  doc::Value status = doc::Value::Map();
                  status.Set("version", "1.2.3");
                  return status;
                },
            .live_limit = std::chrono::milliseconds(20)};
  }

  os::UniqueFd Connect() const {
    os::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    return fd;
  }
  // Sends the request and returns everything until the server closes.
  std::string Talk(const os::UniqueFd& fd, const std::string& request) {
    EXPECT_EQ(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    bool closed = false;
    auto watch = loop_->Watch(fd.get(), os::EventLoop::Ready::kRead, [&] {
      char buffer[4096];
      const ssize_t size = read(fd.get(), buffer, sizeof buffer);
      if (size <= 0) {
        closed = true;
      } else {
        answer.append(buffer, static_cast<std::size_t>(size));
      }
    });
    EXPECT_TRUE(RunUntil(*loop_, [&] { return closed; }));
    return answer;
  }
  std::string Request(const std::string& method, const std::string& path) {
    return Talk(Connect(),
                method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  std::string Get(const std::string& path) { return Request("GET", path); }

  std::unique_ptr<os::EventLoop> loop_ = os::EventLoop::Create().value();
  metrics::Registry registry_;
  std::function<void(std::function<void(Status)>)> live_ =
      [](const std::function<void(Status)>& done) { done({}); };
  Status ready_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, ReadyzSaysWhyNot) {
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith("HTTP/1.1 200 OK"), EndsWith("\r\n\r\nok\n")));
  ready_ = Error(Code::kUnavailable, "nvidia.com/gpu is not registered");
  EXPECT_THAT(Get("/readyz?verbose"),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("nvidia.com/gpu is not registered\n")));
}

TEST_F(ServerTest, LivezWaitsForALateAnswer) {
  std::function<void(Status)> answer;
  os::EventLoop::Handle later;
  live_ = [&](std::function<void(Status)> done) {
    answer = std::move(done);
    later = loop_->After(std::chrono::milliseconds(1), [&] { answer({}); });
  };
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, LivezFailsWhereNobodyAnswersInTime) {
  std::function<void(Status)> answer;
  live_ = [&](std::function<void(Status)> done) { answer = std::move(done); };
  EXPECT_THAT(Get("/livez"),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("a thread does not answer")));
  answer({});  // too late, and harmless
  server_.reset();
  answer({});
}

TEST_F(ServerTest, AServerMayEndWhileLivezWaits) {
  std::function<void(Status)> answer;
  live_ = [&](std::function<void(Status)> done) { answer = std::move(done); };
  const os::UniqueFd client = Connect();
  ASSERT_GT(send(client.get(), "GET /livez HTTP/1.1\r\n\r\n", 23, 0), 0);
  ASSERT_TRUE(RunUntil(*loop_, [&] { return answer != nullptr; }));
  server_.reset();
  answer({});
  EXPECT_EQ(server_, nullptr);
}

TEST_F(ServerTest, MetricsHavePrometheusContentType) {
  registry_.AddCounter("c_total", "C.").Increment();
  EXPECT_THAT(Get("/metrics"), AllOf(HasSubstr("Content-Type: text/plain; version=0.0.4"),
                                     HasSubstr("\nc_total 1\n")));
}

TEST_F(ServerTest, StatusIsJsonAndAPage) {
  EXPECT_THAT(Get("/status.json"), AllOf(HasSubstr("Content-Type: application/json"),
                                         EndsWith("{\n  \"version\": \"1.2.3\"\n}\n")));
  EXPECT_THAT(Get("/"), AllOf(HasSubstr("Content-Type: text/html"), HasSubstr("1.2.3")));
}

TEST_F(ServerTest, HeadHasNoBody) {
  EXPECT_THAT(Request("HEAD", "/readyz"),
              AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("Content-Length: 3\r\n"),
                    EndsWith("\r\n\r\n")));
}

TEST_F(ServerTest, OtherMethodsAndPathsAreRefused) {
  EXPECT_THAT(Request("POST", "/readyz"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD")));
  EXPECT_THAT(Request("DELETE", "/"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Get("/etc/passwd"), AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("/status.json")));
}

TEST_F(ServerTest, HeadersBeyondTheLimitAndGarbageAreRefused) {
  EXPECT_THAT(
      Talk(Connect(), "GET /readyz HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"),
      Not(HasSubstr("200 OK")));
  EXPECT_THAT(Talk(Connect(), std::string("\0\1\2garbage\r\n\r\n", 14)), Not(HasSubstr("200 OK")));
  EXPECT_THAT(Talk(Connect(), "POST / HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n"),
              HasSubstr("413"));
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 OK")) << "still serves";
}

TEST_F(ServerTest, ServesOnAUnixSocketAndRemovesIt) {
  const TempDir dir;
  auto server = Server::Open(*loop_, UnixAddress{dir / "web.sock"}, MakeSources());
  ASSERT_THAT(server, IsOk());
  const auto client = os::ConnectUnix(dir / "web.sock");
  ASSERT_THAT(client, IsOk());
  EXPECT_THAT(Talk(*client, "GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200 OK"));
  server->reset();
  EXPECT_FALSE(std::filesystem::exists(dir / "web.sock"));
}

TEST_F(ServerTest, ABusyPortOrForeignAddressIsOneClearError) {
  EXPECT_THAT(Server::Open(*loop_, TcpAddress{"127.0.0.1", server_->port()}, MakeSources()),
              IsErrorThat(Code::kInternal, AllOf(HasSubstr("listen on 127.0.0.1:"),
                                                 HasSubstr("Address already in use"))));
  // An address of documentation (RFC 5737): no interface has it.
  EXPECT_THAT(Server::Open(*loop_, TcpAddress{"192.0.2.1", 0}, MakeSources()),
              IsErrorThat(Code::kInternal, HasSubstr("listen on 192.0.2.1:0: bind: ")));
}

TEST_F(ServerTest, WithoutAHostEveryInterfaceIsServed) {
  server_.reset();
  auto server = Server::Open(*loop_, TcpAddress{"", 0}, MakeSources());
  ASSERT_THAT(server, IsOk());
  server_ = std::move(*server);
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 OK"));
}

}  // namespace
}  // namespace ndp::web
