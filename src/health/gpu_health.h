// The recovery state machine of one GPU: what it has seen, whether it is Healthy, and when it wants
// to be looked at again. Pure apart from the injected clock; one thread.
//
// A fault is over only on evidence: a hold-off that doubles with each relapse, no recovery action,
// good probes in a row, and for what needs a reset a sign that one happened. docs/health.md has
// the rules for operators.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "config/settings.h"
#include "health/examination.h"
#include "health/gpu_record.h"
#include "health/xid.h"

namespace ndp::health {

class GpuHealth {
 public:
  // `clock` outlives it.
  GpuHealth(const Clock& clock, const config::Health& settings);

  // A reload: what is latched stays latched; conditions whose check is off now end.
  void Configure(const config::Health& settings);
  // What an earlier process of this boot knew. Before anything else is fed.
  void Restore(GpuRecord record);

  // Classes fault and reset make it Unhealthy; the others change nothing here.
  void OnXid(std::uint64_t xid, XidClass xid_class, const Scope& scope, std::uint64_t count = 1);
  // Field 230, wherever it was read.
  void OnRecoveryAction(int action);
  void OnLost(const std::string& how);
  // The enumeration has it no longer, or again. Being absent is a fault of its own, and being back
  // is evidence of a reset.
  void OnAbsent();
  void OnPresent();
  // The nvidia module was loaded anew: every GPU was reset by that.
  void OnModuleReloaded();
  // A driver call for this GPU does not return, or has returned at last.
  void OnHang();
  void OnHangOver();

  struct Look {
    const Examination& examination;
    std::string expected_uuid;
    config::Health::Checks checks;  // all false: only recovery is of interest
    CheckContext context;           // temperature_high and fabric_expected are added here
    bool polled = true;             // false: findings but "lost" mark nothing
    bool at_once = false;           // after a failed event wait: one bad look is enough
  };
  void OnExamination(const Look& look);

  // By hand: healthy now, relapses forgotten. What is still wrong comes back by being seen.
  void Clear();

  bool healthy() const { return record_.healthy(); }
  const GpuRecord& record() const { return record_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Leave it alone: its driver calls hang or did so lately.
  bool cautious() const { return hung_ || cautious_until_.has_value(); }

  // When the next look is wanted beyond the regular polls; nullopt: not at all.
  std::optional<MonoTime> NextLook() const;
  Duration HoldOff() const;

  // What it still waits for after a reset that was seen, as a next step; empty where there was
  // none.
  std::string AfterReset() const;

  // What an operator may want to read in the log, since the last call ("evidence of a reset: …").
  std::vector<std::string> TakeNotes();

 private:
  // `again`: seen as lasting, so an equal cause that is there already is not a new fault.
  void Latch(Cause cause, bool again = false);
  void Evidence(std::string_view what);
  void Recover();
  void OnGoodLook(MonoTime now);
  void UpdateConditions(const Look& look, const Judgement& judgement, bool counts);
  void BeCautious();
  void Touch() { record_.updated = clock_->Now(); }

  const Clock* clock_;  // never null
  config::Health settings_;
  GpuRecord record_;
  std::vector<std::string> warnings_;
  std::vector<std::string> notes_;

  int good_ = 0;  // probes in a row
  std::optional<MonoTime> last_look_;
  std::optional<int> action_;  // as last read
  bool absent_ = false;
  bool hung_ = false;
  std::optional<MonoTime> cautious_until_;
  Duration cautious_wait_{};
  std::array<int, kConditions> bad_in_row_{};
  std::array<int, kConditions> good_in_row_{};
};

}  // namespace ndp::health
