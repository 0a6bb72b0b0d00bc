// The kubelet's pod resources API, over a real socket in a temporary folder.
#include "rpc/pod_resources.h"

#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "os/unix_socket.h"
#include "pod_resources.grpc.pb.h"
#include "testing/result_matchers.h"

namespace ndp::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Kubelet final : public v1::PodResourcesLister::Service {
 public:
  explicit Kubelet(const fs::path& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket.string(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  grpc::Status List(grpc::ServerContext* /*context*/, const v1::ListPodResourcesRequest* /*none*/,
                    v1::ListPodResourcesResponse* reply) override {
    *reply = pods;
    return status;
  }

  v1::ListPodResourcesResponse pods;
  grpc::Status status;

 private:
  std::unique_ptr<grpc::Server> server_;
};

class PodResourcesTest : public testing::Test {
 protected:
  PodResourcesTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    kubelet_ = std::make_unique<Kubelet>(folder_ / "kubelet.sock");
  }
  ~PodResourcesTest() override {
    kubelet_.reset();
    fs::remove_all(folder_);
  }

  Result<plugin::HeldDevices> Ask() {
    std::promise<Result<plugin::HeldDevices>> answer;
    auto connection = os::ConnectUnix(folder_ / "kubelet.sock");
    if (!connection) return connection.error();
    ListHeldDevices(*std::move(connection), [&answer](Result<plugin::HeldDevices> held) {
      answer.set_value(std::move(held));
    });
    return answer.get_future().get();
  }

  // One more container of one more pod.
  void Hold(const std::string& resource, const std::vector<std::string>& ids) {
    auto* devices = kubelet_->pods.add_pod_resources()->add_containers()->add_devices();
    devices->set_resource_name(resource);
    for (const std::string& id : ids) devices->add_device_ids(id);
  }

  fs::path folder_;
  std::unique_ptr<Kubelet> kubelet_;
};

TEST_F(PodResourcesTest, GathersWhatAllPodsHold) {
  Hold("nvidia.com/gpu", {"GPU-2", "GPU-0"});
  Hold("nvidia.com/gpu", {"GPU-1"});
  Hold("nvidia.com/gpu.shared", {"GPU-3::1"});
  const auto held = Ask();
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(held->Ids("nvidia.com/gpu"), ElementsAre("GPU-0", "GPU-1", "GPU-2"));
  EXPECT_THAT(held->Ids("nvidia.com/gpu.shared"), ElementsAre("GPU-3::1"));
}

TEST_F(PodResourcesTest, NoPodsHoldNothing) {
  const auto held = Ask();
  ASSERT_THAT(held, IsOk());
  EXPECT_EQ(*held, plugin::HeldDevices());
}

// A node with many pods and replicas says more than gRPC takes by default.
TEST_F(PodResourcesTest, TakesMoreThanFourMegabytes) {
  std::vector<std::string> ids;
  for (int i = 0; i < 100'000; ++i)
    ids.push_back("GPU-" + std::string(60, 'x') + std::to_string(i));
  Hold("nvidia.com/gpu", ids);
  const auto held = Ask();
  ASSERT_THAT(held, IsOk());
  EXPECT_EQ(held->Ids("nvidia.com/gpu").size(), ids.size());
}

TEST_F(PodResourcesTest, ARefusalIsAnErrorNotAnEmptyNode) {
  kubelet_->status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"};
  EXPECT_THAT(
      Ask(), IsErrorThat(Code::kInternal, HasSubstr("list pod resources: rejected by rate limit")));
}

}  // namespace
}  // namespace ndp::rpc
