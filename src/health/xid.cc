#include "health/xid.h"

#include <algorithm>
#include <array>
#include <span>

namespace ndp::health {
namespace {

struct Range {
  std::uint16_t first;
  std::uint16_t last;
};

constexpr Range One(std::uint16_t xid) { return {xid, xid}; }

// Catalogue action IGNORE; 162-165 (power smoothing) and 171, 172 (details of a 48) have no action
// of their own. 93 is InfoROM wear, not a fault of the GPU.
constexpr auto kIgnore = std::to_array<Range>({One(14),
                                               {37, 38},
                                               One(44),
                                               One(63),
                                               {66, 67},
                                               {92, 93},
                                               {106, 108},
                                               One(121),
                                               One(137),
                                               One(141),
                                               {152, 153},
                                               One(157),
                                               {160, 165},
                                               {171, 172}});

// Catalogue action RESTART_APP, and 43, 45 (an application ended). 109 is RESET_GPU there since
// R570, but fires on application hangs; the recovery action tells when a reset is really due.
constexpr auto kApplication = std::to_array<Range>({One(8),
                                                    One(11),
                                                    One(13),
                                                    One(25),
                                                    {31, 32},
                                                    {39, 41},
                                                    One(43),
                                                    One(45),
                                                    One(60),
                                                    {68, 72},
                                                    {75, 77},
                                                    One(80),
                                                    {82, 86},
                                                    {88, 89},
                                                    One(94),
                                                    {96, 105},
                                                    One(109),
                                                    {126, 135},
                                                    One(139)});

// Several causes under one number (WORKFLOW_NVLINK5_ERR, XID_154, CHECK_UVM): the driver's
// recovery action decides.
constexpr auto kDriver = std::to_array<Range>({{144, 150}, One(154), One(159)});

// Catalogue action RESET_GPU, RESTART_BM, RESTART_VM; 48 and 74 by their workflows; 167 and 169
// (PCIe fatal timeout, SEC2 halt) have no action yet and are of the same kind as 158 and 62.
constexpr auto kReset = std::to_array<Range>({One(46),
                                              One(48),
                                              One(62),
                                              One(64),
                                              One(74),
                                              One(79),
                                              One(95),
                                              One(110),
                                              {119, 120},
                                              One(136),
                                              One(140),
                                              One(143),
                                              One(151),
                                              {155, 156},
                                              One(158),
                                              One(167),
                                              One(169)});

// Upstream never makes a device Unhealthy for these, and does for all others.
constexpr auto kUpstreamIgnored =
    std::to_array<Range>({One(13), One(31), One(43), One(45), One(68), One(109)});

bool In(std::span<const Range> ranges, std::uint64_t xid) {
  return std::ranges::any_of(ranges, [xid](Range r) { return r.first <= xid && xid <= r.last; });
}

struct Meaning {
  std::uint16_t xid;
  std::string_view text;
};
constexpr auto kMeanings = std::to_array<Meaning>({
    {8, "GPU stopped processing"},
    {11, "invalid push buffer stream"},
    {13, "graphics engine exception"},
    {31, "GPU memory page fault"},
    {32, "corrupted push buffer stream"},
    {38, "driver firmware error"},
    {43, "GPU stopped processing"},
    {45, "preemptive cleanup after earlier errors"},
    {46, "GPU stopped processing"},
    {48, "double bit ECC error"},
    {54, "auxiliary power is not connected"},
    {62, "internal micro-controller halt"},
    {63, "memory row remapped or page retired"},
    {64, "memory row remapping or page retirement failed"},
    {68, "video decoder exception"},
    {69, "graphics engine class error"},
    {74, "NVLink error"},
    {78, "vGPU start error"},
    {79, "GPU has fallen off the bus"},
    {92, "high rate of single bit ECC errors"},
    {94, "contained memory error"},
    {95, "uncontained memory error"},
    {109, "context switch timeout"},
    {110, "security fault"},
    {119, "GSP RPC timeout"},
    {120, "GSP error"},
    {121, "corrected C2C link error"},
    {136, "link training failed"},
    {137, "illegal NVLink peer access"},
    {140, "unrecovered ECC error"},
    {142, "video encoder error"},
    {143, "GPU initialisation error"},
    {144, "NVLink SAW error"},
    {145, "NVLink RLW error"},
    {146, "NVLink TLW error"},
    {147, "NVLink TREX error"},
    {148, "NVLink NVLPW error"},
    {149, "NVLink link error"},
    {150, "NVLink MSE error"},
    {151, "key rotation error"},
    {154, "recovery action changed"},
    {155, "NVLink went down"},
    {156, "resource retired"},
    {157, "resource retirement failed"},
    {158, "GPU fatal timeout"},
    {159, "C2C CHI error"},
    {167, "PCIe fatal timeout"},
    {168, "reduced memory capacity"},
    {169, "SEC2 micro-controller halt"},
    {171, "uncorrectable DRAM error"},
    {172, "uncorrectable SRAM error"},
});
static_assert(std::ranges::is_sorted(kMeanings, {}, &Meaning::xid));

}  // namespace

std::string_view XidClassName(XidClass xid_class) {
  switch (xid_class) {
    case XidClass::kIgnore:
      return "ignore";
    case XidClass::kApplication:
      return "application";
    case XidClass::kDriver:
      return "driver";
    case XidClass::kFault:
      return "fault";
    case XidClass::kReset:
      return "reset";
  }
  return "fault";
}

std::string_view XidMeaning(std::uint64_t xid) {
  const auto found = std::ranges::lower_bound(
      kMeanings, xid, {}, [](const Meaning& m) { return std::uint64_t{m.xid}; });
  return found != kMeanings.end() && found->xid == xid ? found->text : std::string_view();
}

XidClass CatalogueClass(std::uint64_t xid) {
  if (In(kIgnore, xid)) return XidClass::kIgnore;
  if (In(kApplication, xid)) return XidClass::kApplication;
  if (In(kDriver, xid)) return XidClass::kDriver;
  if (In(kReset, xid)) return XidClass::kReset;
  return XidClass::kFault;
}

bool IsGspTimeout(std::uint64_t xid) { return xid == 119 || xid == 120; }

XidClass XidTable::Classify(std::uint64_t xid) const {
  XidClass result = CatalogueClass(xid);
  if (settings_.policy == config::XidPolicy::kUpstream) {
    if (In(kUpstreamIgnored, xid)) {
      result = XidClass::kApplication;
    } else if (result != XidClass::kReset) {
      result = XidClass::kFault;
    }
  }
  if (const auto moved = settings_.moved.find(xid); moved != settings_.moved.end()) {
    result = moved->second;
  }
  if (settings_.enabled.Contains(xid)) {
    return result == XidClass::kReset ? XidClass::kReset : XidClass::kFault;
  }
  return settings_.disabled.Contains(xid) ? XidClass::kIgnore : result;
}

bool XidTable::watches_events() const {
  return !settings_.disabled.all || settings_.enabled.all || !settings_.enabled.xids.empty();
}

}  // namespace ndp::health
