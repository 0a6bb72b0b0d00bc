// The stand-in against a plugin of the test's own, over real sockets.
#include "sim_kubelet/kubelet.h"

#include <device_plugin.grpc.pb.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "doc/json.h"
#include "os/unix_socket.h"
#include "sim_kubelet/commands.h"
#include "sim_kubelet/test_names.h"
#include "testing/result_matchers.h"
#include "testing/temp_dir.h"

namespace ndp::sim_kubelet {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Serves lists that the test sets.
class TestPlugin final : public v1beta1::DevicePlugin::Service {
 public:
  TestPlugin(os::EventLoop& loop, std::filesystem::path folder, std::string endpoint)
      : folder_(std::move(folder)), endpoint_(std::move(endpoint)) {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    Listen(loop);
  }
  ~TestPlugin() override { End(); }

  void Listen(os::EventLoop& loop) {
    listener_ =
        os::UnixListener::Open(loop, {.path = folder_ / endpoint_}, [this](os::UniqueFd fd) {
          grpc::AddInsecureChannelFromFd(server_.get(), fd.Release());
        }).value();
  }
  // Register over a connection of its own; the answer's message, empty if it is well.
  std::string Register(const std::string& resource = kGpu, const std::string& version = "v1beta1") {
    auto fd = os::ConnectUnix(folder_ / kKubeletSocket);
    if (!fd.ok()) return fd.error().message();
    const auto stub =
        v1beta1::Registration::NewStub(grpc::CreateInsecureChannelFromFd("kubelet", fd->Release()));
    grpc::ClientContext context;
    v1beta1::RegisterRequest request;
    request.set_version(version);
    request.set_resource_name(resource);
    request.set_endpoint(endpoint_);
    v1beta1::Empty answer;
    return stub->Register(&context, request, &answer).error_message();
  }
  void Set(std::vector<std::pair<std::string, bool>> devices) {
    const std::lock_guard lock(mutex_);
    devices_ = std::move(devices);
    ++generation_;
    changed_.notify_all();
  }
  void End() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
  }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* options) override {
    options->set_get_preferred_allocation_available(true);
    return grpc::Status::OK;
  }
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    std::unique_lock lock(mutex_);
    int sent = -1;
    while (!ended_ && !context->IsCancelled()) {
      if (sent != generation_) {
        sent = generation_;
        v1beta1::ListAndWatchResponse list;
        for (const auto& [id, healthy] : devices_) {
          auto* device = list.add_devices();
          device->set_id(id);
          device->set_health(healthy ? "Healthy" : "Unhealthy");
        }
        if (!writer->Write(list)) break;
      }
      changed_.wait_for(lock, std::chrono::milliseconds(5));  // a cancel wakes nobody
    }
    return grpc::Status::OK;
  }
  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* answer) override {
    std::vector<std::string> ids(request->container_requests(0).available_deviceids().begin(),
                                 request->container_requests(0).available_deviceids().end());
    std::ranges::sort(ids);
    auto* container = answer->add_container_responses();
    for (int i = 0; i < request->container_requests(0).allocation_size(); ++i) {
      container->add_deviceids(ids[static_cast<std::size_t>(i)]);
    }
    return grpc::Status::OK;
  }
  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* answer) override {
    if (during_allocate) during_allocate();
    auto* container = answer->add_container_responses();
    for (const std::string& id : request->container_requests(0).devices_ids()) {
      if (id == "bad") return {grpc::StatusCode::NOT_FOUND, "no device bad"};
      std::string& text = (*container->mutable_envs())["NVIDIA_VISIBLE_DEVICES"];
      text += (text.empty() ? "" : ",") + id;
    }
    return grpc::Status::OK;
  }

  std::function<void()> during_allocate;

 private:
  const std::filesystem::path folder_;
  const std::string endpoint_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, bool>> devices_ = {{"g0", true}, {"g1", true}};
  int generation_ = 0;
  bool ended_ = false;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<os::UnixListener> listener_;
};

// The loop runs on a thread; the test's own thread plays plugin and control.
class KubeletTest : public testing::TestWithParam<Like> {
 protected:
  void SetUp() override {
    kubelet_ = std::make_unique<Kubelet>(
        *loop_,
        Kubelet::Options{.folder = folder_,
                         .bookkeeping = {.like = GetParam(), .grace = grace_},
                         .dial_limit = std::chrono::milliseconds(1100),
                         .topology_policy = true},
        log_);
    commands_ = std::make_unique<Commands>(loop_->poster(), *kubelet_, [] {});
    runner_ = std::thread([this] { loop_->Run(); });
    EXPECT_EQ(Do(R"({"command":"start"})"), R"({"ok":true})");
    OnLoop([this] { plugin_ = NewPlugin("a.sock"); });
  }
  void TearDown() override {
    OnLoop([this] {
      kubelet_.reset();
      other_.reset();
      plugin_.reset();
    });
    loop_->Stop();
    runner_.join();
  }

  std::unique_ptr<TestPlugin> NewPlugin(const std::string& endpoint) {
    return std::make_unique<TestPlugin>(*loop_, folder_, endpoint);
  }
  void OnLoop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().get();
  }
  std::string Do(std::string_view line) { return commands_->Run(line); }
  Status Wait(int capacity, int allocatable, std::optional<int> endpoints = std::nullopt) {
    return kubelet_->WaitFor({.resource = kGpu,
                              .capacity = capacity,
                              .allocatable = allocatable,
                              .endpoints = endpoints},
                             std::chrono::seconds(10));
  }
  std::vector<std::string> Events() {
    const std::lock_guard lock(events_mutex_);
    return events_;
  }

  TempDir dir_;
  const std::filesystem::path folder_ = dir_ / "kubelet";
  Duration grace_ = std::chrono::minutes(5);
  std::mutex events_mutex_;
  std::vector<std::string> events_;
  EventLog log_{[this](std::string_view, const doc::Value& event) {
    const std::lock_guard lock(events_mutex_);
    events_.push_back(event.Find("event")->Text());
  }};
  std::unique_ptr<os::EventLoop> loop_ = os::EventLoop::Create().value();
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<Commands> commands_;
  std::unique_ptr<TestPlugin> plugin_;
  std::unique_ptr<TestPlugin> other_;
  std::thread runner_;
};

TEST_P(KubeletTest, APluginRegistersAndItsListsMakeTheNode) {
  EXPECT_EQ(plugin_->Register(), "");
  EXPECT_THAT(Wait(2, 2, 1), IsOk());
  plugin_->Set({{"g0", true}, {"g1", false}, {"g2", true}});
  EXPECT_THAT(Wait(3, 2), IsOk());
  EXPECT_THAT(
      Do(R"({"command":"status"})"),
      HasSubstr(R"("nvidia.com/gpu":{"capacity":3,"allocatable":2,"endpoints":["a.sock"])"));
}

TEST_P(KubeletTest, AWrongRequestIsRefused) {
  EXPECT_THAT(plugin_->Register(kGpu, "v1"), HasSubstr("is not supported by kubelet"));
  EXPECT_THAT(plugin_->Register("gpu"), HasSubstr("is invalid"));
}

TEST_P(KubeletTest, AllocateAsksTheChoiceAndKeepsTheAnswerInTheCheckpoint) {
  ASSERT_EQ(plugin_->Register(), "");
  ASSERT_THAT(Wait(2, 2), IsOk());
  EXPECT_THAT(Do(R"({"command":"allocate","resource":"nvidia.com/gpu","count":1,"pod":"p"})"),
              HasSubstr(R"("devices":["g0"],"response":{"envs":{"NVIDIA_VISIBLE_DEVICES":"g0"})"));
  EXPECT_THAT(dir_.Read("kubelet/kubelet_internal_checkpoint"),
              HasSubstr(R"("PodUID":"p","ContainerName":"c","ResourceName":"nvidia.com/gpu")"));
  EXPECT_THAT(Do(R"({"command":"allocate","resource":"nvidia.com/gpu","count":2,"pod":"q"})"),
              HasSubstr("Requested: 2, Available: 1"));
  EXPECT_THAT(
      Do(R"({"command":"allocate","resource":"other/gpu","count":1,"pod":"r"})"),
      HasSubstr(R"("ok":true,"devices":[],"note":"the kubelet knows no resource other/gpu: )"));
  EXPECT_THAT(Do(R"({"command":"release","pod":"p"})"), HasSubstr("true"));
  EXPECT_THAT(dir_.Read("kubelet/kubelet_internal_checkpoint"), Not(HasSubstr("PodUID")));
}

TEST_P(KubeletTest, BareCallsPassThePluginsErrorOn) {
  ASSERT_EQ(plugin_->Register(), "");
  EXPECT_THAT(Do(R"({"command":"raw-allocate","resource":"nvidia.com/gpu","devices":["bad"]})"),
              HasSubstr("Allocate: NOT_FOUND: no device bad"));
  EXPECT_THAT(
      Do(R"({"command":"preferred","resource":"nvidia.com/gpu","count":1,"available":["y","x"]})"),
      HasSubstr(R"("devices":["x"])"));
}

TEST_P(KubeletTest, ADroppedStreamMakesAllUnhealthyUntilRegisteredAgain) {
  ASSERT_EQ(plugin_->Register(), "");
  ASSERT_THAT(Wait(2, 2), IsOk());
  EXPECT_THAT(Do(R"({"command":"drop-stream","resource":"nvidia.com/gpu"})"), HasSubstr("true"));
  EXPECT_THAT(Wait(2, 0, 0), IsOk());
  EXPECT_EQ(plugin_->Register(), "");
  EXPECT_THAT(Wait(2, 2, 1), IsOk());
}

TEST_P(KubeletTest, ARestartRemovesSocketsAndRemembersByCheckpoint) {
  ASSERT_EQ(plugin_->Register(), "");
  ASSERT_THAT(Wait(2, 2), IsOk());
  dir_.Write("kubelet/other-file", "");
  EXPECT_THAT(Do(R"({"command":"restart"})"), HasSubstr("true"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.sock"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "other-file"));
  EXPECT_THAT(Wait(0, 0, 0), IsOk());
  EXPECT_THAT(Do(R"({"command":"allocate","resource":"nvidia.com/gpu","count":1})"),
              HasSubstr("Available: 0"))
      << "the resource is known from the checkpoint";
}

TEST_P(KubeletTest, RegisterWaitsForASocketThatIsPutBack) {
  std::filesystem::remove(folder_ / "a.sock");
  std::string answer = "none";
  std::thread caller([&] { answer = plugin_->Register(); });
  OnLoop([this] { plugin_->Listen(*loop_); });
  caller.join();
  EXPECT_EQ(answer, "");
}

TEST_P(KubeletTest, RegisterFailsAfterTheDialLimitWhereNobodyListens) {
  std::filesystem::remove(folder_ / "a.sock");
  EXPECT_THAT(plugin_->Register(), HasSubstr("failed to dial device plugin"));
}

TEST_P(KubeletTest, RefusedAndDelayedRegistrations) {
  EXPECT_THAT(Do(R"({"command":"refuse","count":1,"message":"not today"})"), HasSubstr("true"));
  EXPECT_EQ(plugin_->Register(), "not today");
  EXPECT_THAT(Do(R"({"command":"delay","ms":1,"count":1})"), HasSubstr("true"));
  EXPECT_EQ(plugin_->Register(), "");
}

TEST_P(KubeletTest, TwoInstancesEachInItsManner) {
  OnLoop([this] { other_ = NewPlugin("b.sock"); });
  ASSERT_EQ(plugin_->Register(), "");
  ASSERT_EQ(other_->Register(), "");
  const bool side_by_side = GetParam() == Like::k137;
  ASSERT_THAT(Wait(2, 2, side_by_side ? 2 : 1), IsOk());
  plugin_->End();
  if (side_by_side) {
    EXPECT_THAT(Wait(2, 2, 1), IsOk());
  } else {
    EXPECT_THAT(Wait(2, 0, 0), IsOk()) << "the older one's end closes the newer's connection";
  }
}

TEST_P(KubeletTest, AnIdThatLeavesDuringAllocateCrashesIt) {
  ASSERT_EQ(plugin_->Register(), "");
  ASSERT_THAT(Wait(2, 2), IsOk());
  plugin_->during_allocate = [this] {
    plugin_->Set({{"g9", true}});
    EXPECT_THAT(Wait(1, 1), IsOk());
  };
  EXPECT_THAT(Do(R"({"command":"allocate","resource":"nvidia.com/gpu","count":2})"),
              HasSubstr("the real kubelet crashes"));
  EXPECT_THAT(Events(), Contains("crashed"));
}

TEST_P(KubeletTest, FurtherStreamsEachSeeTheirLists) {
  ASSERT_EQ(plugin_->Register(), "");
  ASSERT_THAT(Wait(2, 2), IsOk());
  const auto until = [this](const char* part) {
    const SystemClock clock;
    const MonoTime end = clock.Now() + std::chrono::seconds(10);
    while (Do(R"({"command":"streams"})").find(part) == std::string::npos && clock.Now() < end) {
      std::this_thread::yield();
    }
    EXPECT_THAT(Do(R"({"command":"streams"})"), HasSubstr(part));
  };
  constexpr const char* kOpenA =
      R"({"command":"open-stream","resource":"nvidia.com/gpu","stream":"A"})";
  EXPECT_EQ(Do(kOpenA), R"({"ok":true})");
  EXPECT_THAT(Do(kOpenA), HasSubstr("stream 'A' is open"));
  until(R"("A":{"open":true,"lists":1,"devices":2,"unhealthy":[]})");
  EXPECT_EQ(Do(R"({"command":"close-stream","stream":"A"})"), R"({"ok":true})");
  EXPECT_THAT(Do(R"({"command":"close-stream","stream":"B"})"), HasSubstr("no stream 'B'"));
  EXPECT_EQ(Do(R"({"command":"open-stream","resource":"nvidia.com/gpu","stream":"B"})"),
            R"({"ok":true})");
  until(R"("B":{"open":true,"lists":1)");
  plugin_->Set({{"g0", false}, {"g1", true}});
  until(R"("B":{"open":true,"lists":2,"devices":2,"unhealthy":["g0"]})");
  EXPECT_THAT(Do(R"({"command":"streams"})"), HasSubstr(R"("A":{"open":false,"lists":1)"));
}

TEST_P(KubeletTest, ACommandThatIsWrongIsRefused) {
  EXPECT_THAT(Do("{"), HasSubstr(R"("ok":false)"));
  EXPECT_THAT(Do(R"({"command":"allocate"})"),
              HasSubstr(R"("ok":false,"error":"allocate needs 'resource', a text)"));
}

INSTANTIATE_TEST_SUITE_P(Like, KubeletTest, testing::Values(Like::k134, Like::k137),
                         [](const auto& param) {
                           return param.param == Like::k134 ? "1_34" : "1_37";
                         });

class ForgettingKubeletTest : public KubeletTest {
 protected:
  ForgettingKubeletTest() { grace_ = std::chrono::milliseconds(20); }
};

TEST_P(ForgettingKubeletTest, AResourceWithoutPluginIsForgottenAfterItsGrace) {
  ASSERT_EQ(plugin_->Register(), "");
  ASSERT_THAT(Wait(2, 2), IsOk());
  plugin_->End();
  EXPECT_THAT(Wait(0, 0, 0), IsOk());
  EXPECT_THAT(Events(), Contains("forgotten"));
}

INSTANTIATE_TEST_SUITE_P(Like, ForgettingKubeletTest, testing::Values(Like::k137));

}  // namespace
}  // namespace ndp::sim_kubelet
