#include <fmt/format.h>

#include "cmd/command.h"
#include "ndp_version.h"  // written at build time

namespace ndp::cmd {

std::string VersionText() { return fmt::format("ndp {} (commit {})", NDP_VERSION, NDP_COMMIT); }

}  // namespace ndp::cmd
