// std::mutex with the annotations that clang's -Wthread-safety checks.
#pragma once

#include <mutex>

#if defined(__clang__)
#define NDP_ANNOTATE(x) __attribute__((x))
#else
#define NDP_ANNOTATE(x)
#endif
#define NDP_GUARDED_BY(mutex) NDP_ANNOTATE(guarded_by(mutex))
#define NDP_REQUIRES(...) NDP_ANNOTATE(requires_capability(__VA_ARGS__))
#define NDP_EXCLUDES(...) NDP_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace ndp {

class NDP_ANNOTATE(capability("mutex")) Mutex {
 public:
  void Lock() NDP_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void Unlock() NDP_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class NDP_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NDP_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() NDP_ANNOTATE(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace ndp
