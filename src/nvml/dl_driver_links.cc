// How GPUs are linked. Slow on some hosts (0.6 s a call has been seen), so read after registration.
#include "base/text.h"
#include "nvml/dl_driver.h"

namespace ndp::nvml {
namespace {

constexpr unsigned kMaxLinks = 36;

LinkEnd EndOf(int type) {
  switch (type) {
    case 0:
      return LinkEnd::kGpu;
    case 1:
      return LinkEnd::kNpu;
    case 2:
      return LinkEnd::kSwitch;
    default:
      return LinkEnd::kUnknown;
  }
}

}  // namespace

Reply<int> DlDriver::CommonAncestor(const std::string& a, const std::string& b) {
  auto first = Find(a);
  if (!first) return std::unexpected(first.error());
  auto second = Find(b);
  if (!second) return std::unexpected(second.error());
  int level = 0;
  if (auto got = lib().Call(lib().common_ancestor, *first, *second, &level); !got) {
    return std::unexpected(got.error());
  }
  return level;
}

Reply<std::vector<NvLink>> DlDriver::ActiveLinks(const std::string& pci_bus_id) {
  auto device = Find(pci_bus_id);
  if (!device) return std::unexpected(device.error());
  std::vector<NvLink> links;
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    int active = 0;
    if (auto got = lib().Call(lib().nvlink_state, *device, link, &active); !got) {
      if (got.error().lost()) return std::unexpected(got.error());
      // NOT_SUPPORTED on the first link: no NVLink at all. INVALID_ARGUMENT: past the last one.
      if (link == 0 || got.error().status == kInvalidArgument) break;
      continue;
    }
    if (active != 1) continue;
    NvLink out{.link = link};
    int type = 0xFF;
    if (lib().Call(lib().nvlink_remote_type, *device, link, &type)) out.end = EndOf(type);
    abi::PciInfo pci{};
    if (lib().Call(lib().nvlink_remote_pci, *device, link, &pci)) {
      pci.bus_id[sizeof pci.bus_id - 1] = '\0';
      out.remote_pci_bus_id = NormalizePciBusId(pci.bus_id).value_or("");
    }
    links.push_back(std::move(out));
  }
  return links;
}

}  // namespace ndp::nvml
