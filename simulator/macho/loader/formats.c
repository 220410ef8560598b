// Calls with any number of arguments: Darwin passes those on the stack, Linux in registers first.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "files.h"
#include "loader.h"

// Linux's va_list with no registers left, whose arguments all lie on the stack.
typedef struct {
  void *stack, *general_top, *vector_top;
  int general_left, vector_left;
} StackArguments;

typedef union {
  StackArguments fields;
  va_list list;
} Arguments;

static Arguments on_stack(void* first) { return (Arguments){.fields = {.stack = first}}; }

// Darwin's long double is double: `L` goes, or becomes `l` where scanf needs to know the size.
static const char* without_long_double(const char* format, bool scan, char* room, size_t size) {
  char* to = room;
  for (const char* at = format; *at; at++) {
    if (to + 2 > room + size) fail("a format is longer than %zu characters", size);
    if (*at == '%' && at[1] == '%') {
      *to++ = *at++;
    } else if (*at == '%') {
      do *to++ = *at++;
      while (*at && strchr("0123456789+-# .*'$", *at) && to + 2 < room + size);
      if (*at == 'L' && at[1] && strchr("aAeEfFgG", at[1])) {
        if (scan) *to++ = 'l';
        at++;
      }
      if (!*at) break;
    }
    *to++ = *at;
  }
  *to = 0;
  return room;
}

#define FORMAT(scan) \
  char room[1024]; \
  Arguments list = on_stack(arguments); \
  format = without_long_double(format, scan, room, sizeof room)

int darwin_vsnprintf(char* text, size_t size, const char* format, void* arguments) {
  FORMAT(false);
  return vsnprintf(text, size, format, list.list);
}
int darwin_vsnprintf_l(char* text, size_t size, void* locale, const char* format, void* arguments) {
  (void)locale;
  return darwin_vsnprintf(text, size, format, arguments);
}
int darwin_vsprintf(char* text, const char* format, void* arguments) {
  FORMAT(false);
  return vsprintf(text, format, list.list);
}
int darwin_vasprintf(char** text, const char* format, void* arguments) {
  FORMAT(false);
  return vasprintf(text, format, list.list);
}
int darwin_vasprintf_l(char** text, void* locale, const char* format, void* arguments) {
  (void)locale;
  return darwin_vasprintf(text, format, arguments);
}
int darwin_vfprintf(DarwinFile* file, const char* format, void* arguments) {
  FORMAT(false);
  return vfprintf(linux_file(file), format, list.list);
}
int darwin_vprintf(const char* format, void* arguments) {
  FORMAT(false);
  return vprintf(format, list.list);
}
int darwin_vsscanf(const char* text, const char* format, void* arguments) {
  FORMAT(true);
  return vsscanf(text, format, list.list);
}
int darwin_vsscanf_l(const char* text, void* locale, const char* format, void* arguments) {
  (void)locale;
  return darwin_vsscanf(text, format, arguments);
}
int darwin_vfscanf(DarwinFile* file, const char* format, void* arguments) {
  FORMAT(true);
  return vfscanf(linux_file(file), format, list.list);
}

static int linux_flags(const char* path, int flags) {
  static const int pairs[][2] = {{0x4, O_NONBLOCK}, {0x8, O_APPEND}, {0x100, O_NOFOLLOW},     {0x200, O_CREAT},
                                 {0x400, O_TRUNC},  {0x800, O_EXCL}, {0x100000, O_DIRECTORY}, {0x1000000, O_CLOEXEC}};
  int known = 3, translated = flags & 3;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    known |= pairs[i][0];
    if (flags & pairs[i][0]) translated |= pairs[i][1];
  }
  if (flags & ~known) fail("open of %s has the flags %#x, which the loader does not know", path, flags & ~known);
  return translated;
}
int darwin_vopen(const char* path, int flags, int* mode) {
  return open(path, linux_flags(path, flags), flags & 0x200 ? *mode : 0);
}
int darwin_vshm_open(const char* name, int flags, int* mode) {
  // OpenMP registers itself by its process number, and a process that is killed leaves that behind. A later process of
  // the same number would take it for another copy of the library, so no name stays.
  const int registers = strncmp(name, "/__KMP_REGISTERED_LIB_", 22) == 0 && flags & 0x200;
  if (registers) shm_unlink(name);
  const int file = shm_open(name, linux_flags(name, flags), flags & 0x200 ? *mode : 0);
  if (registers && file >= 0) shm_unlink(name);
  return file;
}

int darwin_vfcntl(int file, int command, long* argument) {
  enum { GETFD = 1, SETFD, GETFL, SETFL };
  if (command == GETFD) return fcntl(file, F_GETFD);
  if (command == SETFD) return fcntl(file, F_SETFD, (int)*argument);
  fail("fcntl has the command %d, which the loader does not know", command);
}

// clang-format off
// The address of the first argument on the stack becomes the next argument in a register.
#define ON_STACK(name, reg)                  \
    extern void stack_##name(void);          \
    OFFER(name, stack_##name);               \
    __asm__(".globl stack_" #name "\nstack_" #name ":\n  mov " #reg ", sp\n  b darwin_v" #name "\n");
ON_STACK(printf, x1) ON_STACK(fprintf, x2) ON_STACK(sprintf, x2) ON_STACK(snprintf, x3) ON_STACK(snprintf_l, x4)
ON_STACK(asprintf, x2) ON_STACK(asprintf_l, x3) ON_STACK(sscanf, x2) ON_STACK(sscanf_l, x3)
ON_STACK(open, x2) ON_STACK(shm_open, x2) ON_STACK(fcntl, x2)
OFFER(vsnprintf, darwin_vsnprintf);
OFFER(vasprintf, darwin_vasprintf);
OFFER(vfprintf, darwin_vfprintf);
OFFER(vsscanf, darwin_vsscanf);
OFFER(vfscanf, darwin_vfscanf);
