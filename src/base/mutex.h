#pragma once

#include <condition_variable>
#include <mutex>

// Capability attributes, with which clang checks the locking (libstdc++'s mutex has none).
#if defined(__clang__)
#define EDL_CAPABILITY(x) __attribute__((capability(x)))
#define SCOPED_CAPABILITY __attribute__((scoped_lockable))
#define EDL_GUARDED_BY(x) __attribute__((guarded_by(x)))
#define REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define EDL_NO_THREAD_SAFETY_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define EDL_CAPABILITY(x)
#define SCOPED_CAPABILITY
#define EDL_GUARDED_BY(x)
#define REQUIRES(...)
#define ACQUIRE(...)
#define RELEASE(...)
#define EDL_NO_THREAD_SAFETY_ANALYSIS
#endif
// Abseil, which gRPC brings, defines the same macro to the same effect.
#ifndef GUARDED_BY
#define GUARDED_BY(x) EDL_GUARDED_BY(x)
#endif

namespace edl {

class EDL_CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }      // NOLINT: BasicLockable
  void unlock() RELEASE() { mutex_.unlock(); }  // NOLINT: BasicLockable

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable for Mutex. Wakeups may be spurious, so callers check their condition in a
// loop.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) { condition_.wait(mutex); }
  // Returns false if the deadline passed.
  template <typename TimePoint>
  bool WaitUntil(Mutex& mutex, TimePoint deadline) REQUIRES(mutex) {
    return condition_.wait_until(mutex, deadline) == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace edl
