// Calls that mean the same on both systems, with the same arguments and structures: musl's are used as they are.
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "loader.h"

extern __int128 __divti3(__int128, __int128), __modti3(__int128, __int128);
extern unsigned __int128 __udivti3(unsigned __int128, unsigned __int128),
    __umodti3(unsigned __int128, unsigned __int128);
extern double _Complex __muldc3(double, double, double, double), __divdc3(double, double, double, double);
extern float _Complex __mulsc3(float, float, float, float), __divsc3(float, float, float, float);

// musl's acoshf returns numbers for some arguments below -2, where acosh is not defined.
static float acosh_of_float(float x) { return x < 1 ? NAN : acoshf(x); }

// zig's bzero writes byte by byte.
static void zero(void* to, size_t size) { memset(to, 0, size); }

#define S(name) OFFER(name, name);
#define MATH(name) S(name) S(name##f)
// clang-format off
S(__divti3) S(__modti3) S(__udivti3) S(__umodti3) S(__muldc3) S(__mulsc3) S(__divdc3) S(__divsc3)
S(malloc) S(calloc) S(realloc) S(free) S(aligned_alloc) S(abort) S(_exit) S(getenv) S(setenv) S(unsetenv)
S(memchr) S(memcmp) S(memcpy) S(memmove) S(memset) OFFER(bzero, zero); S(strcat) S(strchr) S(strcmp) S(strcpy) S(strdup)
S(strlen) S(strncat) S(strncmp) S(strncpy) S(strnlen) S(strpbrk) S(strrchr) S(strspn) S(strcspn) S(strstr)
S(strtok_r) S(strcasecmp) S(strncasecmp) S(strlcpy) S(strlcat)
S(atof) S(atoi) S(atol) S(atoll) S(strtod) S(strtof) S(strtol) S(strtoll) S(strtoul) S(strtoull) S(lldiv)
S(qsort) S(rand) S(srand)
S(wcslen) S(wmemchr) S(wmemcmp) S(wmemcpy) S(wmemmove) S(wmemset) S(wcstol) S(wcstoul) S(wcstoll) S(wcstoull)
S(wcstod) S(wcstof)
S(time) S(gmtime_r) S(localtime) S(localtime_r) S(mktime) S(timegm) S(strftime) S(gettimeofday) S(nanosleep)
S(sleep) S(usleep)
S(puts) S(putchar) S(close) S(read) S(write) S(pread) S(pwrite) S(lseek) S(fsync) S(ftruncate)
S(dup2) S(pipe) S(access) S(chdir) S(getcwd) S(mkdir) S(rmdir) S(mkdtemp) S(mkstemp) S(link) S(symlink)
S(readlink) S(rename) S(remove) S(unlink) S(chmod) S(fchmod) S(isatty) S(munmap) S(shm_unlink) S(opendir) S(closedir)
S(getpid) S(getppid) S(geteuid) S(gethostname) OFFER(close$NOCANCEL, close); OFFER(realpath$DARWIN_EXTSN, realpath);
MATH(sin) MATH(cos) MATH(tan) MATH(asin) MATH(acos) MATH(atan) MATH(atan2) MATH(sinh) MATH(cosh) MATH(tanh)
MATH(asinh) S(acosh) OFFER(acoshf, acosh_of_float); MATH(atanh) MATH(exp) MATH(exp2) MATH(expm1) MATH(log) MATH(log2) MATH(log10) MATH(log1p)
MATH(pow) MATH(hypot) MATH(cbrt) MATH(fmod) MATH(remainder) MATH(erf) MATH(erfc) MATH(tgamma) MATH(lgamma)
MATH(ldexp) MATH(frexp) MATH(modf) MATH(nextafter) MATH(round) MATH(nearbyint)
