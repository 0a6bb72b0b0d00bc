// Warnings that stand for as long as something is so: each is told once when it begins, however
// often it is found again. What comes and goes all the time is told ten times a minute at most, and
// told later where it stays. Loop thread only.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace ndp::node {

class StandingWarnings {
 public:
  // `cause`: what the limit counts them as; texts are told apart by it, but not kept.
  StandingWarnings(log::RateLimit& limit, std::string_view cause) : limit_(limit), cause_(cause) {}

  // `now`: all that stand.
  void Tell(const std::vector<std::string>& now);
  // Whether a warning that stands is in the log.
  bool told(std::string_view warning) const { return told_.contains(warning); }

 private:
  bool Allow(const std::string& warning);

  log::RateLimit& limit_;
  const std::string cause_;
  std::set<std::string, std::less<>> told_;
};

}  // namespace ndp::node
