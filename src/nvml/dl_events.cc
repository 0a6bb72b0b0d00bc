// One NVML event set.
#include <map>

#include "nvml/dl_driver.h"

namespace ndp::nvml {
namespace {

class DlEventSource final : public EventSource {
 public:
  DlEventSource(std::shared_ptr<DlDriver> driver, abi::EventSet set)
      : driver_(std::move(driver)), set_(set) {}
  ~DlEventSource() override { (void)lib().Call(lib().event_set_free, set_); }

  Reply<std::uint64_t> Register(const std::string& pci_bus_id, std::uint64_t wanted) override {
    auto device = driver_->Find(pci_bus_id);
    if (!device) return std::unexpected(device.error());
    std::uint64_t supported = 0;
    if (auto got = lib().Call(lib().supported_event_types, *device, &supported); !got) {
      return std::unexpected(got.error());
    }
    const std::uint64_t mask = wanted & supported;
    if (auto got = lib().Call(lib().register_events, *device, mask, set_); !got) {
      return std::unexpected(got.error());
    }
    gpus_[*device] = pci_bus_id;
    return mask;
  }

  Reply<std::optional<Event>> Wait(std::chrono::milliseconds timeout) override {
    abi::EventData data{};
    data.gpu_instance_id = abi::kNoInstance;
    data.compute_instance_id = abi::kNoInstance;
    if (auto got =
            lib().Call(lib().event_set_wait, set_, &data, static_cast<unsigned>(timeout.count()));
        !got) {
      if (got.error().status == kTimeout) return std::optional<Event>();
      return std::unexpected(got.error());
    }
    Event event{.type = data.event_type, .data = data.event_data};
    if (auto at = gpus_.find(data.device); at != gpus_.end()) event.pci_bus_id = at->second;
    if (data.gpu_instance_id != abi::kNoInstance) event.gpu_instance = data.gpu_instance_id;
    if (data.compute_instance_id != abi::kNoInstance)
      event.compute_instance = data.compute_instance_id;
    return std::optional(std::move(event));
  }

 private:
  const Library& lib() const { return driver_->lib(); }

  std::shared_ptr<DlDriver> driver_;
  abi::EventSet set_;
  // Handles are stable within a session, which this set does not outlive.
  std::map<abi::Device, std::string> gpus_;
};

}  // namespace

Reply<std::unique_ptr<EventSource>> DlDriver::OpenEvents() {
  abi::EventSet set = nullptr;
  if (auto got = lib().Call(lib().event_set_create, &set); !got)
    return std::unexpected(got.error());
  return std::make_unique<DlEventSource>(shared_from_this(), set);
}

}  // namespace ndp::nvml
