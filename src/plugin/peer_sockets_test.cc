#include "plugin/peer_sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::plugin {
namespace {

using ::testing::ElementsAre;

TEST(PeerSocketsTest, AFileThatGoesIsAnEndedPeer) {
  PeerSockets peers;
  peers.Appeared("nvidia-gpu.sock");
  EXPECT_TRUE(peers.Vanished("nvidia-gpu.sock"));
  EXPECT_FALSE(peers.Vanished("nvidia-gpu.sock")) << "counted once";
}

TEST(PeerSocketsTest, APeerThatStopsAcceptingHasEndedOnce) {
  PeerSockets peers;
  peers.Appeared("nvidia-gpu.sock");
  EXPECT_FALSE(peers.Probed("nvidia-gpu.sock", true));
  EXPECT_TRUE(peers.Probed("nvidia-gpu.sock", false));
  EXPECT_FALSE(peers.Probed("nvidia-gpu.sock", false));
  EXPECT_FALSE(peers.Vanished("nvidia-gpu.sock")) << "its dead file is no second end";
}

TEST(PeerSocketsTest, ADeadFileIsNotProbedUntilItIsMadeAnew) {
  PeerSockets peers;
  peers.Appeared("a");
  peers.Appeared("b");
  peers.Probed("a", false);
  EXPECT_THAT(peers.Living(), ElementsAre("b"));
  peers.Appeared("a");
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
