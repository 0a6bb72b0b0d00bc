// The configuration file is a person's: any text is either refused with a reason that names
// something, or gives settings that can be shown and whose warnings are not empty.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "config/load.h"
#include "doc/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using ndp::config::Program;
  std::string text(reinterpret_cast<const char*>(data), size);
  for (const Program program : {Program::kDevicePlugin, Program::kFeatureDiscovery}) {
    auto loaded = ndp::config::Load(
        {.program = program,
         .flags = {{"config-file", {"config.yaml"}}, {"enable-resource-naming", {"true"}}},
         .env = [](const std::string&) { return std::optional<std::string>(); },
         .read_file = [&text](const std::string&) { return ndp::Result<std::string>(text); }});
    if (!loaded) {
      NDP_CHECK(!loaded.error().message().empty());
      continue;
    }
    NDP_CHECK(!ndp::doc::ToJson(ndp::config::ToJson(*loaded)).empty());
    for (const std::string& warning : loaded->warnings) NDP_CHECK(!warning.empty());
  }
  return 0;
}
