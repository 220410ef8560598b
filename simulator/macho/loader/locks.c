// Threads and locks. Darwin's objects begin with a signature, zero once it is used up here, and are larger than musl's.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

typedef struct {
  uint64_t signature;
  union {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_cond_t* condition;
    uint32_t done;
  };
} Object;

enum { RECURSIVE_INITIALISER = 0x32AAABA2, ERRORCHECK_INITIALISER = 0x32AAABA1, BUSY = 1, READY = 2 };
enum { DARWIN_NORMAL, DARWIN_ERRORCHECK, DARWIN_RECURSIVE };

static int mutex_kind(int darwin) {
  switch (darwin) {
    case DARWIN_ERRORCHECK:
      return PTHREAD_MUTEX_ERRORCHECK;
    case DARWIN_RECURSIVE:
      return PTHREAD_MUTEX_RECURSIVE;
    default:
      return PTHREAD_MUTEX_NORMAL;
  }
}

static int initialise(pthread_mutex_t* mutex, int kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind);
  return pthread_mutex_init(mutex, &attributes);
}

// The mutex of a static initialiser is all zero, which is musl's normal mutex; the other kinds are made at first use.
static pthread_mutex_t* mutex_of(Object* object) {
  uint64_t signature = __atomic_load_n(&object->signature, __ATOMIC_ACQUIRE);
  if (signature == RECURSIVE_INITIALISER || signature == ERRORCHECK_INITIALISER) {
    uint64_t expected = signature;
    if (__atomic_compare_exchange_n(&object->signature, &expected, BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      initialise(
          &object->mutex, signature == RECURSIVE_INITIALISER ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_ERRORCHECK);
      __atomic_store_n(&object->signature, READY, __ATOMIC_RELEASE);
    }
  }
  while (__atomic_load_n(&object->signature, __ATOMIC_ACQUIRE) == BUSY) sched_yield();
  return &object->mutex;
}

typedef struct {
  uint64_t signature;
  uint32_t kind;
} MutexAttributes;

SHIM(pthread_mutexattr_init, int, (MutexAttributes * attributes)) {
  attributes->kind = DARWIN_NORMAL;
  return 0;
}
SHIM(pthread_mutexattr_settype, int, (MutexAttributes * attributes, int kind)) {
  if (kind < DARWIN_NORMAL || kind > DARWIN_RECURSIVE) return darwin_error(EINVAL);
  attributes->kind = kind;
  return 0;
}
static int no_resources(void) { return 0; }
SHIM(pthread_mutex_init, int, (Object * object, const MutexAttributes* attributes)) {
  object->signature = READY;
  return darwin_error(initialise(&object->mutex, mutex_kind(attributes ? attributes->kind : DARWIN_NORMAL)));
}
SHIM(pthread_mutex_lock, int, (Object * object)) { return darwin_error(pthread_mutex_lock(mutex_of(object))); }
SHIM(pthread_mutex_trylock, int, (Object * object)) { return darwin_error(pthread_mutex_trylock(mutex_of(object))); }
SHIM(pthread_mutex_unlock, int, (Object * object)) { return darwin_error(pthread_mutex_unlock(mutex_of(object))); }
SHIM(pthread_mutex_destroy, int, (Object * object)) { return darwin_error(pthread_mutex_destroy(mutex_of(object))); }

SHIM(pthread_rwlock_init, int, (Object * object, const void* attributes)) {
  (void)attributes;
  return darwin_error(pthread_rwlock_init(&object->rwlock, NULL));
}
SHIM(pthread_rwlock_rdlock, int, (Object * object)) { return darwin_error(pthread_rwlock_rdlock(&object->rwlock)); }
SHIM(pthread_rwlock_wrlock, int, (Object * object)) { return darwin_error(pthread_rwlock_wrlock(&object->rwlock)); }
SHIM(pthread_rwlock_tryrdlock, int, (Object * object)) {
  return darwin_error(pthread_rwlock_tryrdlock(&object->rwlock));
}
SHIM(pthread_rwlock_trywrlock, int, (Object * object)) {
  return darwin_error(pthread_rwlock_trywrlock(&object->rwlock));
}
SHIM(pthread_rwlock_unlock, int, (Object * object)) { return darwin_error(pthread_rwlock_unlock(&object->rwlock)); }
SHIM(pthread_rwlock_destroy, int, (Object * object)) { return darwin_error(pthread_rwlock_destroy(&object->rwlock)); }

// A condition of Darwin has room for a pointer only.
static pthread_cond_t* condition_of(Object* object) {
  pthread_cond_t* found = __atomic_load_n(&object->condition, __ATOMIC_ACQUIRE);
  if (found) return found;
  pthread_cond_t *made = calloc(1, sizeof *made), *expected = NULL;
  if (!made) fail("no memory for a condition");
  if (__atomic_compare_exchange_n(&object->condition, &expected, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made;
  free(made);
  return expected;
}
SHIM(pthread_cond_init, int, (Object * object, const void* attributes)) {
  (void)attributes;
  object->condition = NULL;
  return 0;
}
SHIM(pthread_cond_destroy, int, (Object * object)) {
  free(object->condition);
  object->condition = NULL;
  return 0;
}
SHIM(pthread_cond_wait, int, (Object * object, Object* mutex)) {
  return darwin_error(pthread_cond_wait(condition_of(object), mutex_of(mutex)));
}
SHIM(pthread_cond_timedwait, int, (Object * object, Object* mutex, const struct timespec* until)) {
  return darwin_error(pthread_cond_timedwait(condition_of(object), mutex_of(mutex), until));
}
SHIM(pthread_cond_timedwait_relative_np, int, (Object * object, Object* mutex, const struct timespec* duration)) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += duration->tv_sec;
  until.tv_nsec += duration->tv_nsec;
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  return shim_pthread_cond_timedwait(object, mutex, &until);
}
SHIM(pthread_cond_signal, int, (Object * object)) { return darwin_error(pthread_cond_signal(condition_of(object))); }
SHIM(pthread_cond_broadcast, int, (Object * object)) {
  return darwin_error(pthread_cond_broadcast(condition_of(object)));
}

// Whoever comes second waits until the function is through. It may itself call `once` for something else.
SHIM(pthread_once, int, (Object * object, void (*function)(void))) {
  enum { NOT_YET, RUNNING, DONE };
  uint32_t expected = NOT_YET;
  if (__atomic_compare_exchange_n(&object->done, &expected, RUNNING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    function();
    __atomic_store_n(&object->done, DONE, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&object->done, __ATOMIC_ACQUIRE) != DONE) sched_yield();
  return 0;
}

SHIM(pthread_key_create, int, (uint64_t* key, void (*destructor)(void*))) {
  pthread_key_t made;
  int error = pthread_key_create(&made, destructor);
  *key = made;
  return darwin_error(error);
}

SHIM(
    pthread_create,
    int,
    (pthread_t * thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument)) {
  return darwin_error(pthread_create(thread, attributes, function, argument));
}
SHIM(pthread_attr_setdetachstate, int, (pthread_attr_t * attributes, int state)) { // Darwin: 1 joinable, 2 detached
  return darwin_error(
      pthread_attr_setdetachstate(attributes, state == 2 ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE));
}
SHIM(pthread_join, int, (pthread_t thread, void** value)) { return darwin_error(pthread_join(thread, value)); }
SHIM(pthread_setname_np, int, (const char* name)) { return darwin_error(pthread_setname_np(pthread_self(), name)); }
SHIM(pthread_getname_np, int, (pthread_t thread, char* name, size_t size)) {
  return darwin_error(pthread_getname_np(thread, name, size));
}
SHIM(pthread_threadid_np, int, (pthread_t thread, uint64_t* number)) {
  if (thread && !pthread_equal(thread, pthread_self())) fail("pthread_threadid_np of another thread is not there");
  *number = syscall(SYS_gettid);
  return 0;
}

// The port of a thread is a number that others may compare.
SHIM(pthread_mach_thread_np, uint32_t, (pthread_t thread)) {
  uint64_t number;
  shim_pthread_threadid_np(thread, &number);
  return number;
}

// Cancelling a thread: Darwin's names for the two states and the two types have other numbers.
SHIM(pthread_setcancelstate, int, (int state, int* old)) {
  int before, error = pthread_setcancelstate(state == 1 ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE, &before);
  if (old) *old = before == PTHREAD_CANCEL_ENABLE ? 1 : 0;
  return darwin_error(error);
}
SHIM(pthread_setcanceltype, int, (int kind, int* old)) {
  int before, error = pthread_setcanceltype(kind == 2 ? PTHREAD_CANCEL_DEFERRED : PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  if (old) *old = before == PTHREAD_CANCEL_DEFERRED ? 2 : 0;
  return darwin_error(error);
}

// clang-format off
// What means the same on both systems.
#define SAME(name) OFFER(name, name);
SAME(pthread_key_delete) SAME(pthread_setspecific) SAME(pthread_getspecific) SAME(pthread_self) SAME(pthread_equal)
SAME(pthread_detach) SAME(pthread_atfork) SAME(pthread_attr_init) SAME(pthread_attr_destroy)
SAME(pthread_attr_setstacksize) SAME(sched_yield)
OFFER(pthread_mutexattr_destroy, no_resources);
OFFER(pthread_condattr_init, no_resources);
OFFER(pthread_condattr_destroy, no_resources);
