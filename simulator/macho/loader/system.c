// The system: clocks, limits, facts about the machine, memory.
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

enum { DARWIN_PAGE = 16384 };

static uint64_t memory(void) { return (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE); }
static uint64_t processors(void) { return sysconf(_SC_NPROCESSORS_ONLN); }

static clockid_t clock_named(int darwin) {
  switch (darwin) {
    case 0:
      return CLOCK_REALTIME;
    case 4:
    case 5:
    case 6:
    case 8:
    case 9:
      return CLOCK_MONOTONIC;
    case 12:
      return CLOCK_PROCESS_CPUTIME_ID;
    case 16:
      return CLOCK_THREAD_CPUTIME_ID;
    default:
      fail("clock %d is not known to the loader", darwin);
  }
}
SHIM(clock_gettime, int, (int clock, struct timespec* time)) { return clock_gettime(clock_named(clock), time); }
SHIM(clock_gettime_nsec_np, uint64_t, (int clock)) {
  struct timespec time;
  clock_gettime(clock_named(clock), &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}
SHIM(mach_absolute_time, uint64_t, (void)) { return shim_clock_gettime_nsec_np(6); }
SHIM(mach_timebase_info, int, (uint32_t* fraction)) { // absolute time counts nanoseconds
  fraction[0] = fraction[1] = 1;
  return 0;
}
SHIM(getrusage, int, (int whose, struct rusage* usage)) {
  int code = getrusage(whose, usage);
  usage->ru_maxrss *= 1024; // bytes on Darwin
  return code;
}
SHIM(getrlimit, int, (int darwin, struct rlimit* limit)) {
  static const int numbers[] = {RLIMIT_CPU, RLIMIT_FSIZE,   RLIMIT_DATA,  RLIMIT_STACK, RLIMIT_CORE,
                                RLIMIT_AS,  RLIMIT_MEMLOCK, RLIMIT_NPROC, RLIMIT_NOFILE};
  if (darwin < 0 || darwin > 8) return errno = EINVAL, -1;
  int code = getrlimit(numbers[darwin], limit);
  const rlim_t infinity = 0x7FFFFFFFFFFFFFFF;
  if (limit->rlim_cur > infinity) limit->rlim_cur = infinity;
  if (limit->rlim_max > infinity) limit->rlim_max = infinity;
  return code;
}

SHIM(sysconf, long, (int name)) {
  switch (name) {
    case 3:
      return sysconf(_SC_CLK_TCK);
    case 5:
      return sysconf(_SC_OPEN_MAX);
    case 29:
      return DARWIN_PAGE;
    case 57:
      return sysconf(_SC_NPROCESSORS_CONF);
    case 58:
      return processors();
    case 93:
      return 16384;
    case 94:
      return -1; // no limit on threads
    case 96:
      return 200112; // threads, as POSIX 2001 has them
    case 200:
      return memory() / DARWIN_PAGE;
    default:
      fail("sysconf(%d) is not known to the loader", name);
  }
}
SHIM(pathconf, long, (const char* path, int name)) {
  if (name == 4) return pathconf(path, _PC_NAME_MAX);
  if (name == 5) return pathconf(path, _PC_PATH_MAX);
  fail("pathconf(%d) is not known to the loader", name);
}

// What Darwin itself answers for a name that the machine does not have is ENOENT, as for a feature of a later processor.
SHIM(sysctlbyname, int, (const char* name, void* value, size_t* size, const void* set, size_t set_size)) {
  (void)set_size;
  const struct {
    const char* name;
    size_t count;
    uint64_t values[3];
  } facts[] = {
      {"hw.ncpu", 1, {processors()}},
      {"hw.activecpu", 1, {processors()}},
      {"hw.physicalcpu", 1, {processors()}},
      {"hw.physicalcpu_max", 1, {processors()}},
      {"hw.logicalcpu", 1, {processors()}},
      {"hw.logicalcpu_max", 1, {processors()}},
      {"hw.packages", 1, {1}},
      {"hw.memsize", 1, {memory()}},
      {"hw.pagesize", 1, {DARWIN_PAGE}},
      {"hw.cachelinesize", 1, {128}},
      {"hw.l1icachesize", 1, {131072}},
      {"hw.l1dcachesize", 1, {65536}},
      {"hw.l2cachesize", 1, {4194304}},
      {"hw.cacheconfig", 3, {processors(), 1, processors()}}, // how many share the memory, L1 and L2
  };
  if (set) fail("sysctlbyname sets %s, which the loader does not", name);
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    if (strcmp(facts[i].name, name)) continue;
    size_t whole = facts[i].count * 8;
    if (value && *size != whole && (whole > 8 ? *size < whole : *size != 4))
      fail("sysctlbyname has %zu bytes for %s", *size, name);
    if (value) memcpy(value, facts[i].values, *size < whole ? *size : whole);
    if (!value || *size > whole) *size = whole;
    return 0;
  }
  errno = ENOENT;
  return -1;
}
SHIM(sysctl, int, (const int* path, unsigned length, void* value, size_t* size, const void* set, size_t set_size)) {
  static const struct {
    int number;
    const char* name;
  } hardware[] = {{3, "hw.ncpu"},          {7, "hw.pagesize"},      {16, "hw.cachelinesize"},
                  {17, "hw.l1icachesize"}, {18, "hw.l1dcachesize"}, {20, "hw.l2cachesize"},
                  {22, "hw.l3cachesize"},  {24, "hw.memsize"},      {25, "hw.activecpu"}};
  for (size_t i = 0; length == 2 && path[0] == 6 && i < sizeof hardware / sizeof *hardware; i++)
    if (hardware[i].number == path[1]) return shim_sysctlbyname(hardware[i].name, value, size, set, set_size);
  fail("sysctl(%d, %d) is not known to the loader", path[0], length > 1 ? path[1] : 0);
}
SHIM(uname, int, (char* fields)) { // sysname, nodename, release, version, machine
  static const char* const texts[] = {"Darwin", "localhost", "23.0.0", "Darwin Kernel Version 23.0.0", "arm64"};
  memset(fields, 0, 5 * 256);
  for (int i = 0; i < 5; i++) strcpy(fields + 256 * i, texts[i]);
  return 0;
}

// Ports of the kernel: numbers. Only this task and this host are known.
enum { TASK_PORT = 0x103, HOST_PORT = 0x203, HOST_BASIC_INFO = 1, BASIC_INFO_WORDS = 12, INVALID_ARGUMENT = 4 };
static uint32_t task_port = TASK_PORT;
SHIM(mach_host_self, uint32_t, (void)) { return HOST_PORT; }
SHIM(mach_port_deallocate, int, (uint32_t task, uint32_t port)) {
  return task == TASK_PORT && port ? 0 : INVALID_ARGUMENT;
}
SHIM(host_info, int, (uint32_t host, int kind, uint32_t* words, uint32_t* count)) {
  if (host != HOST_PORT || kind != HOST_BASIC_INFO) fail("host_info of kind %d is not known to the loader", kind);
  if (*count < BASIC_INFO_WORDS) return INVALID_ARGUMENT;
  uint32_t number = processors(), size = memory() > 0x7FFFFFFF ? 0x7FFFFFFF : memory();
  const uint32_t basic[BASIC_INFO_WORDS] = {number, number, size,   0x0100000C, 2,        0,
                                            number, number, number, number,     memory(), memory() >> 32};
  memcpy(words, basic, sizeof basic);
  *count = BASIC_INFO_WORDS;
  return 0;
}

// Programs may ask how signals are handled; the loader itself reports crashes.
typedef struct {
  void* handler;
  uint32_t mask;
  int32_t flags;
} DarwinAction;
SHIM(sigaction, int, (int number, const DarwinAction* set, DarwinAction* old)) {
  if (number < 1 || number > 31) return errno = EINVAL, -1;
  if (set) fail("sigaction sets a handler of signal %d, which the loader does not", number);
  if (old) *old = (DarwinAction){0};
  return 0;
}

// There are no catalogues of translated messages.
SHIM(catopen, void*, (const char* name, int flags)) {
  (void)name, (void)flags;
  errno = ENOENT;
  return (void*)-1;
}
SHIM(catgets, const char*, (void* catalogue, int set, int number, const char* text)) {
  (void)catalogue, (void)set, (void)number;
  return text;
}
SHIM(catclose, int, (void* catalogue)) {
  (void)catalogue;
  errno = EBADF;
  return -1;
}

SHIM(mmap, void*, (void* address, size_t size, int protection, int flags, int file, off_t offset)) {
  int known = 0x1 | 0x2 | 0x10 | 0x40 | 0x1000;
  if (flags & ~known) fail("mmap has the flags %#x, which the loader does not know", flags & ~known);
  int translated = flags & 3;
  if (flags & 0x10) translated |= MAP_FIXED;
  if (flags & 0x40) translated |= MAP_NORESERVE;
  if (flags & 0x1000) translated |= MAP_ANONYMOUS, file = -1;
  return mmap(address, size, protection, translated, file, offset);
}
SHIM(memset_pattern16, void, (uint8_t* to, const uint8_t* pattern, size_t size)) {
  for (size_t i = 0; i < size; i++) to[i] = pattern[i & 15];
}
static void check_size(const char* name, size_t size, size_t room) {
  if (size > room) fail("%s writes %zu bytes into %zu", name, size, room);
}
SHIM(__memcpy_chk, void*, (void* to, const void* from, size_t size, size_t room)) {
  check_size("memcpy", size, room);
  return memcpy(to, from, size);
}
SHIM(__memmove_chk, void*, (void* to, const void* from, size_t size, size_t room)) {
  check_size("memmove", size, room);
  return memmove(to, from, size);
}
SHIM(__memset_chk, void*, (void* to, int value, size_t size, size_t room)) {
  check_size("memset", size, room);
  return memset(to, value, size);
}
static uint64_t stack_guard = 0x5BD1E995A7C31F00;
SHIM(__stack_chk_fail, void, (void)) { fail("a function overwrote its stack"); }

static const char* error_text(int number) { return strerror(linux_error(number)); }
SHIM(perror, void, (const char* before)) {
  fprintf(stderr, "%s%s%s\n", before ? before : "", before ? ": " : "", error_text(*darwin_errno()));
}
SHIM(strerror_r, int, (int number, char* text, size_t size)) {
  const char* found = strerror(linux_error(number));
  strlcpy(text, found, size);
  return strlen(found) < size ? 0 : darwin_error(ERANGE);
}
SHIM(posix_memalign, int, (void** memory, size_t alignment, size_t size)) {
  return darwin_error(posix_memalign(memory, alignment, size));
}
SHIM(arc4random, uint32_t, (void)) {
  uint32_t word;
  if (getrandom(&word, sizeof word, 0) != sizeof word) fail("the system has no random numbers");
  return word;
}

typedef struct { double sine, cosine; } Pair;
typedef struct { float sine, cosine; } FloatPair;
SHIM(__sincos_stret, Pair, (double x)) { return (Pair){sin(x), cos(x)}; }
SHIM(__sincosf_stret, FloatPair, (float x)) { return (FloatPair){sinf(x), cosf(x)}; }

static uint64_t page_size = DARWIN_PAGE;
SHIM(getpagesize, int, (void)) { return DARWIN_PAGE; }
extern void nothing_to_do(void);
__asm__(".globl nothing_to_do\nnothing_to_do: ret\n");

// clang-format off
OFFER(__error, darwin_errno);
OFFER(strerror, error_text);
OFFER(mach_continuous_time, shim_mach_absolute_time);
OFFER(mach_task_self_, &task_port);
OFFER(vm_page_size, &page_size);
OFFER(__stack_chk_guard, &stack_guard);
OFFER(__chkstk_darwin, nothing_to_do);
OFFER(__exp10, exp10);
