// The spin lock that old headers beside metal-cpp's use.
#pragma once
typedef int OSSpinLock;
#define OS_SPINLOCK_INIT 0
static inline void OSSpinLockLock(volatile OSSpinLock* lock) {
  while (__sync_lock_test_and_set(lock, 1)) {
  }
}
static inline bool OSSpinLockTry(volatile OSSpinLock* lock) { return !__sync_lock_test_and_set(lock, 1); }
static inline void OSSpinLockUnlock(volatile OSSpinLock* lock) { __sync_lock_release(lock); }
