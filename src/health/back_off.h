// How long to pause after a wait for events that failed: a lost GPU makes every wait fail at once,
// and nobody may spin. Doubles with each failure; a wait that went well for a minute has made up
// for the failures before. Pure.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace ndp::health {

class BackOff {
 public:
  BackOff(Duration first, Duration longest) : first_(first), longest_(longest) {}

  // A wait begins.
  void Started(MonoTime now) { started_ = now; }
  // It failed: the pause until the next one.
  Duration Failed(MonoTime now) {
    if (now - started_ > kGoodWait) pause_ = Duration::zero();
    pause_ = pause_ == Duration::zero() ? first_ : std::min(pause_ * 2, longest_);
    return pause_;
  }
  // The pause is the first after a good time: whoever has found the cause need not sit it out.
  bool first() const { return pause_ == first_; }

 private:
  static constexpr Duration kGoodWait = std::chrono::minutes(1);

  Duration first_;
  Duration longest_;
  Duration pause_{};
  MonoTime started_{};
};

}  // namespace ndp::health
