#include "plugin/list_stream.h"

namespace ndp::plugin {

void ListStream::EndNow() {
  ending_ = true;
  wanted_ = begun_;
}

ListStream::Step ListStream::Next() {
  if (busy_ || finished_) return Step::kWait;
  if (wanted_ > begun_) {
    begun_ = wanted_;
    busy_ = true;
    return Step::kWrite;
  }
  if (!ending_) return Step::kWait;
  finished_ = true;
  return Step::kFinish;
}

}  // namespace ndp::plugin
