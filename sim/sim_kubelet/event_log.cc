#include "sim_kubelet/event_log.h"

#include <chrono>

#include "doc/json.h"

namespace ndp::sim_kubelet {

void EventLog::Write(std::string_view event,
                     std::initializer_list<std::pair<std::string_view, doc::Value>> fields) {
  MutexLock lock(mutex_);
  // Under the lock, so that the lines' times ascend.
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  doc::Value line = doc::Value::Map();
  line.Set("us", std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  line.Set("event", event);
  for (const auto& [key, value] : fields) line.Set(key, value);
  sink_(doc::ToJson(line), line);
}

}  // namespace ndp::sim_kubelet
