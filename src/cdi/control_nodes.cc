#include "cdi/control_nodes.h"

#include <algorithm>
#include <vector>

namespace ndp::cdi {
namespace {

const std::vector<std::string>& ControlNodes() {
  static const std::vector<std::string> nodes = {"/dev/nvidia-modeset", "/dev/nvidia-uvm-tools",
                                                 "/dev/nvidia-uvm", "/dev/nvidiactl"};
  return nodes;
}

}  // namespace

void AddControlNodes(const Discovery& discovery, Edits& edits) {
  AddDeviceNodesIfThere(discovery, ControlNodes(), edits);
}

bool IsControlNode(const std::string& path) {
  return std::ranges::find(ControlNodes(), path) != ControlNodes().end();
}

}  // namespace ndp::cdi
