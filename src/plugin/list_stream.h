// What one ListAndWatch stream does next. Content is known by its version alone: the full list is
// sent for every version, but versions that come while a write is under way are gathered into one.
// Pure; used by the thread of the stream's server.
#pragma once

#include <cstdint>

namespace ndp::plugin {

class ListStream {
 public:
  enum class Step {
    kWait,
    kWrite,   // version() is on its way: report by OnWritten
    kFinish,  // end the call; nothing comes after it
  };

  // There is content to send. Versions only grow.
  void Offer(std::uint64_t version) {
    if (!ending_) wanted_ = version;
  }
  // End when everything offered is on the wire.
  void EndAfterOffered() { ending_ = true; }
  // End now: what is offered and not begun is not sent.
  void EndNow();
  // The other side has gone, or a write failed: nothing can be sent any more.
  void OnBroken() { EndNow(); }
  void OnWritten() { busy_ = false; }

  // What to do now. A kWrite or kFinish it has answered is taken as begun.
  Step Next();

  // Of the last kWrite.
  std::uint64_t version() const { return begun_; }

 private:
  std::uint64_t wanted_ = 0;
  std::uint64_t begun_ = 0;
  bool busy_ = false;
  bool ending_ = false;
  bool finished_ = false;
};

}  // namespace ndp::plugin
