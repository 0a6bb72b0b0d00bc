#include "health/gpu_health.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace ndp::health {
namespace {
using namespace std::chrono_literals;

constexpr Duration kLongestHoldOff = 1h;
constexpr Duration kDoublingWindow = 1h;
constexpr Duration kRelapseWindow = 24h;
constexpr std::size_t kRelapsesToQuarantine = 4;
// A storm of different XIDs must not grow without bound; past this all is one cause.
constexpr std::size_t kMostCauses = 32;
// The cheap calls to a GPU whose calls hung come 1 to 10 minutes apart with the default hold-off.
constexpr int kCautiousGrowth = 10;

constexpr auto Index(Condition condition) { return static_cast<std::size_t>(condition); }

bool CheckIsOn(Condition condition, const config::Health::Checks& checks) {
  switch (condition) {
    case Condition::kUnresponsive:
      return checks.lost;
    case Condition::kRowRemap:
      return checks.row_remap;
    case Condition::kRetiredPages:
      return checks.retired_pages;
    case Condition::kTemperature:
      return checks.temperature;
    case Condition::kFabric:
      return checks.fabric;
    case Condition::kComputeMode:
      return checks.compute_mode;
  }
  return false;
}

std::string XidReason(std::uint64_t xid, const Scope& scope) {
  const std::string_view meaning = XidMeaning(xid);
  return fmt::format("XID {}{}{}{}", xid, meaning.empty() ? "" : ": ", meaning, ScopeText(scope));
}

}  // namespace

GpuHealth::GpuHealth(const Clock& clock, const config::Health& settings)
    : clock_(&clock), settings_(settings) {}

void GpuHealth::Configure(const config::Health& settings) {
  settings_ = settings;
  for (int i = 0; i < kConditions; ++i) {
    if (!settings.polling.enabled ||
        !CheckIsOn(static_cast<Condition>(i), settings.polling.checks)) {
      record_.conditions[static_cast<std::size_t>(i)].reset();
    }
  }
}

void GpuHealth::Restore(GpuRecord record) {
  record_ = std::move(record);
  // A damaged file may name times to come: they would hold a GPU for ever.
  const MonoTime now = clock_->Now();
  record_.last_fault = std::min(record_.last_fault, now);
  record_.updated = std::min(record_.updated, now);
  if (record_.recovered) record_.recovered = std::min(*record_.recovered, now);
  std::erase_if(record_.relapses, [now](MonoTime at) { return at > now; });
  if (std::ranges::any_of(record_.causes,
                          [](const Cause& c) { return c.xid && IsGspTimeout(*c.xid); })) {
    BeCautious();
  }
}

void GpuHealth::OnXid(std::uint64_t xid, XidClass xid_class, const Scope& scope,
                      std::uint64_t count) {
  if (xid_class != XidClass::kFault && xid_class != XidClass::kReset) return;
  const bool reset = xid_class == XidClass::kReset;
  Latch({.cause_class = reset ? CauseClass::kReset : CauseClass::kFault,
         .scope = reset ? Scope{} : scope,
         .xid = xid,
         .reason = XidReason(xid, reset ? Scope{} : scope),
         .next_step = reset ? fmt::format("when its pods are gone, reset the GPU: {}; if it comes "
                                          "again, run NVIDIA's field diagnostic",
                                          kResetCommands)
                            : "none if it comes back by itself; see the kernel log",
         .since = clock_->Wall(),
         .count = count});
  if (IsGspTimeout(xid)) BeCautious();
}

void GpuHealth::OnRecoveryAction(int action) {
  if (action != 0) {
    record_.action_was_set = true;
    Latch({.cause_class = CauseClass::kReset,
           .reason = "the driver asks for recovery action " + RecoveryActionText(action),
           .next_step = RecoveryActionNextStep(action),
           .since = clock_->Wall()},
          action_ == action);
  } else if (record_.action_was_set) {
    record_.action_was_set = false;
    Evidence("the recovery action went back to none");
  }
  action_ = action;
}

void GpuHealth::OnLost(const std::string& how) {
  Latch(
      {.cause_class = CauseClass::kReset,
       .reason = "the driver has lost the GPU or needs it reset: " + how,
       .next_step = fmt::format("reset the GPU: {}; reboot the node if that fails", kResetCommands),
       .since = clock_->Wall()},
      true);
}

void GpuHealth::OnAbsent() {
  if (absent_) return;
  absent_ = true;
  Latch({.cause_class = CauseClass::kReset,
         .reason = "the driver does not list the GPU any more",
         .next_step = "look for PCIe errors in the kernel log; reseat or replace the GPU",
         .since = clock_->Wall()},
        true);
}

void GpuHealth::OnPresent() {
  if (!absent_) return;
  absent_ = false;
  Evidence("it was absent and is back");
}

void GpuHealth::OnModuleReloaded() { Evidence("the nvidia module was loaded anew"); }

void GpuHealth::OnHang() {
  hung_ = true;
  Latch({.cause_class = CauseClass::kFault,
         .reason = "a driver call for this GPU does not return",
         .next_step = "look for NVRM messages in the kernel log; a reboot may be needed",
         .since = clock_->Wall()},
        true);
}

void GpuHealth::OnHangOver() {
  if (!hung_) return;
  hung_ = false;
  notes_.emplace_back("the driver call that was hanging has returned");
  BeCautious();
}

void GpuHealth::BeCautious() {
  cautious_wait_ = std::max<Duration>(settings_.recovery.hold_off, 1ms);
  cautious_until_ = clock_->Now() + cautious_wait_;
}

void GpuHealth::Latch(Cause cause, bool again) {
  const MonoTime now = clock_->Now();
  good_ = 0;
  const auto same = std::ranges::find_if(record_.causes, [&](const Cause& other) {
    return other.reason == cause.reason && other.scope == cause.scope &&
           other.cause_class == cause.cause_class;
  });
  if (same != record_.causes.end() && again) return;

  if (record_.causes.empty() && record_.recovered) {
    record_.relapses.push_back(now);
    std::erase_if(record_.relapses, [&](MonoTime at) { return now - at > kRelapseWindow; });
    if (record_.relapses.size() >= kRelapsesToQuarantine) record_.quarantined = true;
  }
  record_.last_fault = now;
  record_.recovered.reset();
  if (cause.cause_class == CauseClass::kReset || record_.quarantined) record_.awaits_reset = true;
  if (same != record_.causes.end()) {
    same->count += cause.count;
  } else if (record_.causes.size() >= kMostCauses) {
    Cause& last = record_.causes.back();
    last.count += cause.count;
    last.scope = {};
  } else {
    record_.causes.push_back(std::move(cause));
  }
  Touch();
}

void GpuHealth::Evidence(std::string_view what) {
  if (!record_.awaits_reset) return;
  record_.awaits_reset = false;
  // A relapse of what was before the reset says nothing about the GPU as it is now.
  if (std::exchange(record_.quarantined, false)) record_.relapses.clear();
  good_ = 0;
  notes_.push_back(fmt::format("evidence of a reset: {}", what));
  Touch();
}

Duration GpuHealth::HoldOff() const {
  Duration hold_off = settings_.recovery.hold_off;
  const Duration longest = std::max(hold_off, kLongestHoldOff);
  const auto recent = std::ranges::count_if(
      record_.relapses, [this](MonoTime at) { return record_.last_fault - at <= kDoublingWindow; });
  for (std::ptrdiff_t i = 0; i < recent && hold_off < longest; ++i) hold_off *= 2;
  return std::min(hold_off, longest);
}

void GpuHealth::OnExamination(const Look& look) {
  const auto due = NextLook();
  const MonoTime now = clock_->Now();  // after `due`, which may be the moment itself
  // Regular polls in between are not probes, and a cheap look at a cautious GPU is none either.
  const bool counts = due && now >= *due && !cautious_until_;

  if (cautious_until_) {
    if (look.examination.failure) {
      cautious_wait_ =
          std::min<Duration>(cautious_wait_ * 2, settings_.recovery.hold_off * kCautiousGrowth);
      cautious_until_ = now + std::max<Duration>(cautious_wait_, 1ms);
    } else {
      cautious_until_.reset();
    }
  }
  if (counts || !due) last_look_ = now;

  const nvml::HealthSample& sample = look.examination.sample;
  CheckContext context = look.context;
  context.temperature_high = record_.conditions[Index(Condition::kTemperature)].has_value();
  context.fabric_expected |= record_.fabric_completed;
  const Judgement judgement = Judge(look.examination, look.checks, context);
  warnings_ = judgement.warnings;
  const bool replaced = !look.examination.failure && look.examination.uuid != look.expected_uuid;
  const bool good = !look.examination.failure && !judgement.lost && !replaced &&
                    sample.recovery_action.value_or(0) == 0 &&
                    !(sample.remapped_rows && sample.remapped_rows->failure);

  if (judgement.lost && look.checks.lost) OnLost(*judgement.lost);
  if (!look.examination.failure && !replaced) {
    if (sample.fabric && sample.fabric->state == nvml::FabricState::kCompleted) {
      record_.fabric_completed = true;
    }
    const Counters counters = Counters::Of(sample);
    if (const auto fell = record_.counters.FellTo(counters)) {
      Evidence(fmt::format("the count of {} fell", *fell));
    }
    if (!healthy() && record_.counters != counters) Touch();
    record_.counters.Update(counters);
    // Going back to none is evidence however the checks are set.
    if (sample.recovery_action && (look.checks.recovery_action || *sample.recovery_action == 0)) {
      OnRecoveryAction(*sample.recovery_action);
    }
  }
  if (look.polled && !replaced) UpdateConditions(look, judgement, counts);
  if (!good) {
    good_ = 0;
  } else if (counts) {
    OnGoodLook(now);
  }
}

void GpuHealth::UpdateConditions(const Look& look, const Judgement& judgement, bool counts) {
  for (int i = 0; i < kConditions; ++i) {
    const auto condition = static_cast<Condition>(i);
    const std::size_t at = Index(condition);
    const auto found = std::ranges::find(judgement.bad, condition, &Finding::condition);
    const bool bad = found != judgement.bad.end();
    // A look that failed has not seen the others.
    if (!bad && (look.examination.failure || judgement.lost)) continue;
    auto& cause = record_.conditions[at];
    if (!bad) {
      bad_in_row_[at] = 0;
      if (cause && counts && ++good_in_row_[at] >= settings_.recovery.probes) {
        cause.reset();
        Touch();
      }
      continue;
    }
    good_in_row_[at] = 0;
    ++bad_in_row_[at];
    if (cause) {
      ++cause->count;
    } else if (bad_in_row_[at] >= BadSamplesNeeded(condition) ||
               (look.at_once && condition == Condition::kUnresponsive)) {
      cause = Cause{.cause_class = CauseClass::kCondition,
                    .reason = found->reason,
                    .next_step = found->next_step,
                    .since = clock_->Wall()};
      Touch();
    }
  }
}

void GpuHealth::OnGoodLook(MonoTime now) {
  if (record_.causes.empty() || !settings_.recovery.enabled) return;
  if (record_.awaits_reset || absent_ || hung_) return;
  if (now < record_.last_fault + HoldOff()) return;
  if (++good_ >= settings_.recovery.probes) Recover();
}

void GpuHealth::Recover() {
  record_.causes.clear();
  record_.recovered = clock_->Now();
  record_.quarantined = false;
  good_ = 0;
  Touch();
}

void GpuHealth::Clear() {
  record_.causes.clear();
  for (auto& condition : record_.conditions) condition.reset();
  record_.awaits_reset = false;
  record_.quarantined = false;
  record_.action_was_set = false;
  record_.relapses.clear();
  record_.recovered.reset();
  cautious_until_.reset();
  action_.reset();
  absent_ = false;
  good_ = 0;
  bad_in_row_ = {};
  good_in_row_ = {};
  Touch();
}

std::string GpuHealth::AfterReset() const {
  const bool needed_one = std::ranges::any_of(
      record_.causes, [](const Cause& c) { return c.cause_class == CauseClass::kReset; });
  if (!needed_one || record_.awaits_reset || absent_ || hung_) return {};
  if (!settings_.recovery.enabled) return "a reset was seen, and recovery is off: ndp health clear";
  const WallTime from = clock_->Wall() + (record_.last_fault + HoldOff() - clock_->Now());
  return fmt::format("none: a reset was seen; it is Healthy after {} good looks from {} on",
                     settings_.recovery.probes,
                     FormatWallTime(std::chrono::floor<std::chrono::seconds>(from)));
}

std::optional<MonoTime> GpuHealth::NextLook() const {
  if (hung_ || absent_) return std::nullopt;
  if (cautious_until_) return cautious_until_;
  // Never looked at: at once.
  const MonoTime next_probe =
      last_look_ ? *last_look_ + settings_.recovery.probe_interval : MonoTime{};
  std::optional<MonoTime> result;
  if (!record_.causes.empty() && settings_.recovery.enabled) {
    result = std::max(next_probe, record_.last_fault + HoldOff());
  }
  const bool condition =
      std::ranges::any_of(record_.conditions, [](const auto& c) { return c.has_value(); });
  if (condition && settings_.polling.enabled) {
    result = result ? std::min(*result, next_probe) : next_probe;
  }
  return result;
}

std::vector<std::string> GpuHealth::TakeNotes() { return std::exchange(notes_, {}); }

}  // namespace ndp::health
