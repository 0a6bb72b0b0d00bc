// `ndp examine`: looks at one GPU in a session of its own, without opening the others, and prints
// what health checks would see, as JSON. The device plugin runs it for a GPU that it has let go.
#include <fmt/format.h>

#include <cstdio>

#include "cmd/arguments.h"
#include "cmd/command.h"
#include "doc/json.h"
#include "health/examination_document.h"
#include "nvml/dl_driver.h"

namespace ndp::cmd {

int RunExamine(const std::string& name, const std::vector<std::string>& args) {
  Arguments arguments(
      name, "Looks at one GPU, opening no other, and prints what health checks see, as JSON.");
  std::string root = "/";
  std::string gpu;
  bool cheap = false;
  arguments.Required("GPU", gpu, "PCI address");
  arguments.Path("--driver-root-ctr-path", root, "where the driver's root is mounted");
  arguments.Flag("--cheap", cheap, "one call only: whether it answers");
  if (const auto status = arguments.Parse(args)) return *status;
  nvml::DlLoader loader(root);
  loader.set_attaching(false);
  const auto driver = loader.Open();
  if (!driver.ok()) {
    fmt::print(stderr, "{}: {}\n", name, driver.error().message());
    return kFailed;
  }
  const health::Examination seen =
      health::Examine(**driver, gpu, cheap ? health::Depth::kCheap : health::Depth::kFull);
  fmt::print("{}\n", doc::ToJson(health::ToDoc(seen)));
  return kOk;
}

}  // namespace ndp::cmd
