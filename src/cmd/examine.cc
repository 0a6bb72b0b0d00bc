// `ndp examine`: looks at one GPU in a session of its own, without opening the others, and prints
// what health checks would see, as JSON. The device plugin runs it for a GPU that it has let go.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cmd/command.h"
#include "doc/json.h"
#include "health/examination_document.h"
#include "nvml/dl_driver.h"

namespace ndp::cmd {

int RunExamine(const std::string& name, const std::vector<std::string>& args) {
  CLI::App app("Looks at one GPU, opening no other, and prints what health checks see, as JSON.",
               name);
  std::string root = "/";
  std::string gpu;
  bool cheap = false;
  app.add_option("GPU", gpu, "PCI address")->required();
  app.add_option("--driver-root-ctr-path", root, "where the driver's root is mounted");
  app.add_flag("--cheap", cheap, "one call only: whether it answers");
  try {
    // CLI11 takes the arguments last one first.
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
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
