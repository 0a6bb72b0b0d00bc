#include "plugin/peer_sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::plugin {
namespace {

using ::testing::ElementsAre;

constexpr WallTime kMade{std::chrono::hours(1)};

TEST(PeerSocketsTest, AFileThatGoesIsAnEndedPeer) {
  PeerSockets peers;
  peers.Appeared("nvidia-gpu.sock", kMade);
  EXPECT_EQ(peers.Vanished("nvidia-gpu.sock"), kMade);
  EXPECT_FALSE(peers.Vanished("nvidia-gpu.sock")) << "counted once";
}

TEST(PeerSocketsTest, APeerThatStopsAcceptingHasEndedOnce) {
  PeerSockets peers;
  peers.Appeared("nvidia-gpu.sock", kMade);
  EXPECT_FALSE(peers.Probed("nvidia-gpu.sock", true));
  EXPECT_EQ(peers.Probed("nvidia-gpu.sock", false), kMade);
  EXPECT_FALSE(peers.Probed("nvidia-gpu.sock", false));
  EXPECT_FALSE(peers.Vanished("nvidia-gpu.sock")) << "its dead file is no second end";
}

TEST(PeerSocketsTest, ADeadFileIsNotProbedUntilItIsMadeAnew) {
  PeerSockets peers;
  peers.Appeared("a", kMade);
  peers.Appeared("b", kMade);
  peers.Probed("a", false);
  EXPECT_THAT(peers.Living(), ElementsAre("b"));
  peers.Appeared("a", kMade);
  EXPECT_THAT(peers.Living(), ElementsAre("a", "b"));
}

TEST(PeerSocketsTest, NamesNeverSeenAreNoPeers) {
  PeerSockets peers;
  EXPECT_FALSE(peers.Vanished("own"));
  EXPECT_FALSE(peers.Probed("own", false));
  EXPECT_FALSE(peers.any_living());
}

}  // namespace
}  // namespace ndp::plugin
