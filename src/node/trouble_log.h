// Says why devices that are in order are not handed out (a MIG layout, a missing node, a pod that
// holds them under another name): once when it begins and once when it ends. Verdicts of health
// have lines of their own; a reason that a verdict takes the place of has not ended. Loop thread
// only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "health/board.h"
#include "node/offer.h"

namespace ndp::node {

class TroubleLog {
 public:
  explicit TroubleLog(log::RateLimit& limit) : limit_(limit) {}

  // `told`: reasons that somebody else has given.
  void Tell(const std::vector<Offer>& offers, const health::HealthBoard& board,
            const std::set<std::string, std::less<>>& told);

 private:
  log::RateLimit& limit_;
  // By resource and reason: the devices that had it last.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> known_;
};

}  // namespace ndp::node
