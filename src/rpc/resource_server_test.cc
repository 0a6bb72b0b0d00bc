// A resource's server against a kubelet's manners, over real sockets in a temporary folder.
#include "rpc/resource_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "plugin/socket_name.h"
#include "rpc/register_call.h"
#include "testing/fake_kubelet.h"
#include "testing/result_matchers.h"

namespace ndp::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::shared_ptr<const plugin::ResourceView> Gpus(int healthy, int unhealthy = 0) {
  plugin::Resource resource{.name = "nvidia.com/gpu"};
  for (int i = 0; i < healthy + unhealthy; ++i) {
    const std::string id = "GPU-" + std::to_string(i);
    resource.units.push_back({.uuid = id, .index = std::to_string(i), .gpu = i});
    resource.devices.push_back({.id = id, .healthy = i < healthy, .numa_node = i % 2});
  }
  return std::make_shared<plugin::ResourceView>(std::move(resource));
}

auto HasHealthy(std::size_t healthy, std::size_t all) {
  return [=](const FakeKubelet::List& list) {
    std::size_t count = 0;
    for (const auto& [id, device] : list) count += device.healthy ? 1 : 0;
    return count == healthy && list.size() == all;
  };
}
auto HasDevices(std::size_t healthy) { return HasHealthy(healthy, healthy); }

// The node's part: a loop of its own and the folder's watch.
class Plugin {
 public:
  explicit Plugin(const fs::path& folder, bool with_kubelet = true)
      : folder_(folder), with_kubelet_(with_kubelet), loop_(*os::EventLoop::Create()) {
    thread_ = std::thread([this] { loop_->Run(); });
  }
  ~Plugin() {
    Stop();
    loop_->Stop();
    thread_.join();
  }

  // Runs on the loop and waits for it.
  template <typename Function>
  auto Do(Function function) {
    std::promise<decltype(function())> done;
    loop_->Post([&] {
      if constexpr (std::is_void_v<decltype(function())>) {
        function();
        done.set_value();
      } else {
        done.set_value(function());
      }
    });
    return done.get_future().get();
  }

  void Start(std::shared_ptr<const plugin::ResourceView> view,
             Duration register_within = RegisterCall::kDeadline) {
    Do([&] {
      server = ResourceServer::Start(
          view,
          {.socket_dir = folder_,
           .kubelet_socket = with_kubelet_ ? folder_ / "kubelet.sock" : fs::path(),
           .register_within = register_within,
           .peer_probe = peer_probe},
          {.loop = *loop_, .clock = clock_, .metrics = metrics});
      watch_ = os::DirWatch::Open(*loop_, folder_, [this](auto change, std::string_view name) {
        if (server) server->OnFolderEvent(change, name);
      });
    });
  }
  void Stop() {
    Do([&] {
      watch_.reset();
      server.reset();
    });
  }
  void Update(std::shared_ptr<const plugin::ResourceView> view) {
    Do([&] { server->Update(view); });
  }

  // Waits for something that the server's state tells; looks again after each round of the loop.
  template <typename Predicate>
  bool Wait(Predicate predicate) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (std::chrono::steady_clock::now() < end) {
      if (Do([&] { return predicate(*server); })) return true;
      std::this_thread::yield();
    }
    return false;
  }
  bool WaitForRegistered() {
    return Wait([](const ResourceServer& it) { return it.state().registered; });
  }

  metrics::Registry metrics;
  Duration peer_probe = ResourceServer::kPeerProbe;
  std::unique_ptr<ResourceServer> server;  // on the loop

 private:
  const fs::path folder_;
  const bool with_kubelet_;
  SystemClock clock_;
  std::unique_ptr<os::EventLoop> loop_;
  std::unique_ptr<os::DirWatch> watch_;
  std::thread thread_;
};

class ResourceServerTest : public ::testing::Test {
 protected:
  ResourceServerTest() {
    char path[] = "/tmp/ndp-rpc-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~ResourceServerTest() override {
    plugin_.reset();
    kubelet_.reset();
    fs::remove_all(folder_);
  }

  void KubeletUp() { kubelet_ = std::make_unique<FakeKubelet>(folder_); }
  // Both of them, registered.
  void BothUp(int gpus = 2) {
    KubeletUp();
    plugin_ = std::make_unique<Plugin>(folder_);
    plugin_->Start(Gpus(gpus));
    ASSERT_TRUE(kubelet_->WaitForList(HasDevices(static_cast<std::size_t>(gpus))));
    ASSERT_TRUE(plugin_->WaitForRegistered());
  }
  // The socket of another instance: what it does is up to the test.
  os::UniqueFd ListenAt(const std::string& name) const {
    os::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::string path = folder_ / name;
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::memcpy(address.sun_path, path.c_str(), path.size());
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd.get(), 8), 0);
    return fd;
  }
  // Empty where nobody has connected within that time.
  static os::UniqueFd Accept(const os::UniqueFd& listener, std::chrono::milliseconds within) {
    pollfd waiting{.fd = listener.get(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(within.count())) != 1) return {};
    return os::UniqueFd(accept(listener.get(), nullptr, nullptr));
  }
  std::vector<std::string> Sockets() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("nvidia-")) names.push_back(name);
    }
    return names;
  }

  fs::path folder_;
  std::unique_ptr<FakeKubelet> kubelet_;
  std::unique_ptr<Plugin> plugin_;
};

TEST_F(ResourceServerTest, RegistersAndSendsItsList) {
  BothUp();
  EXPECT_TRUE(kubelet_->WaitForList([](const FakeKubelet::List& list) {
    return list ==
           FakeKubelet::List{{"GPU-0", {.numa_nodes = {0}}}, {"GPU-1", {.numa_nodes = {1}}}};
  }));
  EXPECT_TRUE(plugin::IsRegistrationSocket(kubelet_->registrations().at(0)));
  EXPECT_THAT(plugin_->metrics.Text(), HasSubstr("ndp_registered{resource=\"nvidia.com/gpu\"} 1"));
}

TEST_F(ResourceServerTest, AnswersAllCalls) {
  BothUp(4);
  const auto answer = kubelet_->Allocate({{"GPU-3", "GPU-1"}, {"GPU-0"}});
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.containers, 2U);
  EXPECT_THAT(answer.envs, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "GPU-1,GPU-3")));
  EXPECT_THAT(kubelet_->Prefer({"GPU-3", "GPU-1", "GPU-0"}, {"GPU-3"}, 1).ids,
              ElementsAre("GPU-3"));
  EXPECT_TRUE(kubelet_->PreStart());
  EXPECT_THAT(kubelet_->Allocate({{}}).containers, 1U) << "an empty request has an empty answer";
}

TEST_F(ResourceServerTest, BadRequestsGetACodeAndAMessageAndHarmNothing) {
  BothUp();
  const auto unknown = kubelet_->Allocate({{"GPU-7"}});
  EXPECT_EQ(unknown.code, 5) << "NOT_FOUND";
  EXPECT_THAT(unknown.message, HasSubstr("GPU-7"));
  const auto too_many = kubelet_->Prefer({"GPU-0"}, {}, 3);
  EXPECT_EQ(too_many.code, 3) << "INVALID_ARGUMENT";
  EXPECT_THAT(too_many.message, HasSubstr("asked for 3"));
  EXPECT_EQ(kubelet_->Prefer({"GPU-0"}, {}, -1).code, 3);
  EXPECT_EQ(kubelet_->Allocate({{"GPU-0"}}).code, 0);
}

TEST_F(ResourceServerTest, ManyCallsAtOnceAreAnswered) {
  BothUp();
  std::vector<std::future<int>> calls;
  for (int i = 0; i < 32; ++i) {
    calls.push_back(
        std::async(std::launch::async, [&] { return kubelet_->Allocate({{"GPU-1"}}).code; }));
  }
  for (auto& call : calls) EXPECT_EQ(call.get(), 0);
}

TEST_F(ResourceServerTest, EveryStreamGetsEveryChangedListAndOnlyThose) {
  BothUp();
  const auto extra = kubelet_->ExtraStream(1);
  ASSERT_TRUE(extra);
  EXPECT_TRUE(plugin_->Wait([](const ResourceServer& server) { return server.streams() == 2; }));
  plugin_->Update(Gpus(2));  // the same
  plugin_->Update(Gpus(1, 1));
  EXPECT_TRUE(kubelet_->WaitForList(HasHealthy(1, 2)));
  EXPECT_EQ(kubelet_->lists(), 2U);
}

TEST_F(ResourceServerTest, TellsSinceWhenTheKubeletHasADeviceUnhealthy) {
  BothUp();
  plugin_->Update(Gpus(1, 1));
  EXPECT_TRUE(plugin_->Wait(
      [](const ResourceServer& server) { return server.unhealthy().Since("GPU-1").has_value(); }));
  EXPECT_FALSE(plugin_->Do([&] { return plugin_->server->unhealthy().Since("GPU-0"); }));
  EXPECT_EQ(plugin_->Do([&] { return plugin_->server->shown()->devices().size(); }), 2U);
}

TEST_F(ResourceServerTest, AKubeletThatComesLaterIsFoundAtOnce) {
  plugin_ = std::make_unique<Plugin>(folder_);
  plugin_->Start(Gpus(2));
  EXPECT_EQ(plugin_->Do([&] { return plugin_->server->shown(); }), nullptr);
  KubeletUp();  // removes our socket first
  EXPECT_TRUE(kubelet_->WaitForList(HasDevices(2)));
}

TEST_F(ResourceServerTest, ARestartedKubeletGetsANewRegistration) {
  BothUp();
  const auto first = kubelet_->registrations();
  kubelet_.reset();
  KubeletUp();
  EXPECT_TRUE(kubelet_->WaitForList(HasDevices(2)));
  EXPECT_TRUE(plugin_->WaitForRegistered());
  EXPECT_NE(kubelet_->registrations().back(), first.back());
  EXPECT_THAT(Sockets(), ElementsAre(kubelet_->registrations().back()));
}

// A kubelet dials back within Register; the folder may be cleaned meanwhile.
TEST_F(ResourceServerTest, ASocketRemovedDuringRegisterIsPutBack) {
  KubeletUp();
  std::atomic<bool> hang = true;
  kubelet_->HangWhile([&] { return hang.load(); });
  plugin_ = std::make_unique<Plugin>(folder_);
  plugin_->Start(Gpus(2));
  ASSERT_TRUE(kubelet_->WaitForRegistrations(1));
  const fs::path socket = folder_ / kubelet_->registrations().at(0);
  fs::remove(socket);
  EXPECT_TRUE(plugin_->Wait([&](const ResourceServer&) { return fs::exists(socket); }));
  hang = false;
  EXPECT_TRUE(plugin_->WaitForRegistered());
  EXPECT_THAT(kubelet_->registrations(), SizeIs(1));
}

TEST_F(ResourceServerTest, ALostStreamIsRegisteredAgainUnderAnotherPath) {
  BothUp();
  kubelet_->DropStream();
  ASSERT_TRUE(kubelet_->WaitForRegistrations(2));
  EXPECT_TRUE(kubelet_->WaitForList(HasDevices(2)));
  EXPECT_NE(kubelet_->registrations().at(0), kubelet_->registrations().at(1));
  EXPECT_TRUE(plugin_->WaitForRegistered());
  EXPECT_THAT(Sockets(), ElementsAre(kubelet_->registrations().at(1)));
}

TEST_F(ResourceServerTest, ARefusalIsTriedAgainAndTold) {
  KubeletUp();
  kubelet_->RefuseWith("device plugin already connected");
  plugin_ = std::make_unique<Plugin>(folder_);
  plugin_->Start(Gpus(2));
  ASSERT_TRUE(kubelet_->WaitForRegistrations(2));
  EXPECT_THAT(plugin_->Do([&] { return plugin_->server->state().last_error; }),
              HasSubstr("already connected"));
  kubelet_->RefuseWith("");
  EXPECT_TRUE(kubelet_->WaitForList(HasDevices(2)));
}

// 1.37: the last list of an instance that has ended stays in force.
TEST_F(ResourceServerTest, TheListIsSentAgainWhenAPeerEnds) {
  BothUp();
  Plugin peer(folder_);
  peer.Start(Gpus(1, 1));
  ASSERT_TRUE(peer.WaitForRegistered());
  ASSERT_TRUE(kubelet_->WaitForLists(2));
  peer.Stop();
  EXPECT_TRUE(kubelet_->WaitForLists(3));
}

TEST_F(ResourceServerTest, APeerThatIsKilledIsNoticedByItsDeadSocket) {
  BothUp();
  ListenAt("nvidia-gpu.sock").Reset();  // upstream's
  EXPECT_TRUE(kubelet_->WaitForLists(2));
}

// A kubelet of 1.34 asks nobody from a killed instance's end until the other one registers anew.
TEST_F(ResourceServerTest, APeerThatIsKilledIsNoticedBeforeAnyProbe) {
  KubeletUp();
  os::UniqueFd peer = ListenAt("nvidia-gpu-00000001.sock");
  plugin_ = std::make_unique<Plugin>(folder_);
  plugin_->peer_probe = 1h;
  plugin_->Start(Gpus(2));
  os::UniqueFd line = Accept(peer, 30s);
  ASSERT_TRUE(line);
  ASSERT_TRUE(kubelet_->WaitForLists(1));
  ASSERT_TRUE(plugin_->WaitForRegistered());
  // A process that ends closes its descriptors in any order, and its files stay.
  line.Reset();
  peer.Reset();
  EXPECT_TRUE(kubelet_->WaitForLists(2));
  EXPECT_TRUE(fs::exists(folder_ / "nvidia-gpu-00000001.sock"));
}

// Each line that it closes is no reason for another at once.
TEST_F(ResourceServerTest, APeerThatClosesEveryLineIsLeftInPeace) {
  KubeletUp();
  const os::UniqueFd peer = ListenAt("nvidia-gpu-00000001.sock");
  plugin_ = std::make_unique<Plugin>(folder_);
  plugin_->peer_probe = 1h;
  plugin_->Start(Gpus(2));
  ASSERT_TRUE(Accept(peer, 30s));
  ASSERT_TRUE(plugin_->WaitForRegistered());
  int more = 0;
  while (more < 20 && Accept(peer, 200ms)) ++more;
  EXPECT_GE(more, 1);
  EXPECT_LE(more, 4);
}

TEST_F(ResourceServerTest, RetiringSendsAnEmptyListAndThenEnds) {
  BothUp();
  std::promise<void> done;
  plugin_->Do([&] { plugin_->server->Retire([&] { done.set_value(); }); });
  EXPECT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(kubelet_->WaitForList([](const auto& list) { return list.empty(); }));
  EXPECT_TRUE(kubelet_->WaitForStreamEnd());
  EXPECT_THAT(Sockets(), IsEmpty());
  EXPECT_THAT(kubelet_->registrations(), SizeIs(1));
}

TEST_F(ResourceServerTest, RetiringWithoutAKubeletEndsAtOnce) {
  plugin_ = std::make_unique<Plugin>(folder_);
  plugin_->Start(Gpus(2));
  std::promise<void> done;
  plugin_->Do([&] {
    plugin_->server->Retire([&] {
      plugin_->server.reset();  // may be destroyed by the callback
      done.set_value();
    });
  });
  EXPECT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
}

// On SIGTERM no list: on 1.37 it would overrule a successor's.
TEST_F(ResourceServerTest, StoppingEndsStreamsAndRemovesSocketsWithoutAList) {
  BothUp();
  plugin_->Stop();
  EXPECT_TRUE(kubelet_->WaitForStreamEnd());
  EXPECT_EQ(kubelet_->lists(), 1U);
  EXPECT_THAT(Sockets(), IsEmpty());
}

TEST_F(ResourceServerTest, StoppingDoesNotWaitForAHangingRegister) {
  KubeletUp();
  std::promise<void> hangs;
  kubelet_->HangWhile([&, told = false]() mutable {
    if (!std::exchange(told, true)) hangs.set_value();
    return true;
  });
  plugin_ = std::make_unique<Plugin>(folder_);
  plugin_->Start(Gpus(2));
  ASSERT_EQ(hangs.get_future().wait_for(30s), std::future_status::ready);
  const auto start = std::chrono::steady_clock::now();
  plugin_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - start, rpc::RegisterCall::kDeadline / 2);
  EXPECT_THAT(Sockets(), IsEmpty());
}

// A kubelet that stopped in the middle: its socket takes connections and nobody reads them.
TEST_F(ResourceServerTest, ARegisterThatIsNotAnsweredIsGivenUpAndTriedAgain) {
  const os::UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(address.sun_path, (folder_ / "kubelet.sock").c_str());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  plugin_ = std::make_unique<Plugin>(folder_);
  plugin_->Start(Gpus(2), 10ms);
  std::vector<os::UniqueFd> connections;
  for (int attempt = 0; attempt < 2; ++attempt) {
    pollfd waiting{.fd = listener.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&waiting, 1, 30'000), 1) << "attempt " << attempt;
    connections.emplace_back(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  EXPECT_FALSE(plugin_->Do([&] { return plugin_->server->state().registered; }));
}

TEST_F(ResourceServerTest, GarbageOnTheSocketHarmsNobody) {
  BothUp();
  for (const std::string_view garbage :
       {"GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM", "\0\1\2"}) {
    auto connection = os::ConnectUnix(folder_ / kubelet_->registrations().at(0));
    ASSERT_THAT(connection, IsOk());
    ASSERT_EQ(write(connection->get(), garbage.data(), garbage.size()),
              static_cast<ssize_t>(garbage.size()));
  }
  EXPECT_EQ(kubelet_->Allocate({{"GPU-0"}}).code, 0);
  EXPECT_TRUE(plugin_->WaitForRegistered());
}

TEST_F(ResourceServerTest, WithoutAKubeletSocketItServesUnderTheFixedName) {
  KubeletUp();
  Plugin plugin(folder_, false);
  plugin.Start(Gpus(2));
  EXPECT_THAT(Sockets(), ElementsAre("nvidia-gpu.sock"));
  EXPECT_THAT(kubelet_->registrations(), IsEmpty());
  EXPECT_FALSE(plugin.Do([&] { return plugin.server->state().wanted; }));
}

TEST_F(ResourceServerTest, APingIsAnsweredByTheServersThread) {
  BothUp();
  std::promise<void> pong;
  plugin_->Do([&] { plugin_->server->Ping([&] { pong.set_value(); }); });
  EXPECT_EQ(pong.get_future().wait_for(30s), std::future_status::ready);
}

TEST_F(ResourceServerTest, OnlyDeadSocketsOfOurOwnNamingAreRemoved) {
  const auto bound = [&](const std::string& name) {
    const std::string path = folder_ / name;
    os::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::memcpy(address.sun_path, path.c_str(), path.size());
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  };
  bound("nvidia-gpu-00000001.sock");  // and closed at once
  bound("nvidia-mig-1g.10gb-00000002.sock");
  bound("nvidia-gpu.sock");
  bound("other.sock");
  const os::UniqueFd living = bound("nvidia-gpu-00000003.sock");
  ASSERT_EQ(listen(living.get(), 8), 0);
  // Nobody accepts, and its queue is full: it lives all the same.
  const os::UniqueFd busy = bound("nvidia-gpu-00000004.sock");
  ASSERT_EQ(listen(busy.get(), 0), 0);
  std::vector<os::UniqueFd> waiting;
  while (auto connection = os::ConnectUnix(folder_ / "nvidia-gpu-00000004.sock")) {
    waiting.push_back(*std::move(connection));
  }

  EXPECT_EQ(RemoveDeadSockets(folder_), 2U);
  EXPECT_THAT(Sockets(), UnorderedElementsAre("nvidia-gpu-00000003.sock",
                                              "nvidia-gpu-00000004.sock", "nvidia-gpu.sock"));
  EXPECT_TRUE(fs::exists(folder_ / "other.sock"));
  EXPECT_EQ(RemoveDeadSockets(folder_ / "missing"), 0U);

  fs::remove(folder_ / "nvidia-gpu-00000003.sock");
  EXPECT_TRUE(AnyoneServes(folder_)) << "the busy one";
  fs::remove(folder_ / "nvidia-gpu-00000004.sock");
  EXPECT_FALSE(AnyoneServes(folder_)) << "a dead one of upstream's";
  EXPECT_FALSE(AnyoneServes(folder_ / "missing"));
}

}  // namespace
}  // namespace ndp::rpc
