// A program for macOS that calls every name the loader offers and compares with what is known of it. It is compiled
// with Darwin's own headers, so that types, structures and constants are Darwin's. Exports `check_shims`.
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <locale.h>
#include <mach-o/dyld.h>
#include <mach-o/getsect.h>
#include <mach/mach.h>
#include <mach/mach_time.h>
#include <math.h>
#include <nl_types.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>
#include <xlocale.h>

typedef struct Check { const char *name; bool (*holds)(void); struct Check *next; } Check;
static Check *checks;
#define CHECK_NAMED(symbol, id, condition)                                                            \
  static bool holds_##id(void) { return (condition); }                                                \
  __attribute__((constructor)) static void add_##id(void) {                                           \
    static Check check = {symbol, holds_##id};                                                        \
    check.next = checks, checks = &check;                                                             \
  }
#define CHECK(id, condition) CHECK_NAMED(#id, id, condition)
#define SAME(a, b) (__builtin_fabs((double)(a) - (double)(b)) <= 1e-6 * __builtin_fabs((double)(b)))
#define TEXT(a, b) (!strcmp((a), (b)))
#define DO(...) ({ __VA_ARGS__; })

static char folder[64];
static const char *path(const char *name) {
  static char paths[4][128];
  static int next;
  next = (next + 1) % 4;
  snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
  return paths[next];
}
static const char *file_with(const char *text) {
  const char *name = path("text");
  FILE *file = fopen(name, "w");
  fputs(text, file);
  fclose(file);
  return name;
}
#define WITH(text, mode, condition) DO(FILE *f = fopen(file_with(text), mode); bool held = f && (condition); if (f) fclose(f); held)
#define FAILS(call, number) DO(errno = 0; bool failed = (call) == -1; failed && errno == (number))

// ---- compiler support
extern __int128 __divti3(__int128, __int128), __modti3(__int128, __int128);
extern unsigned __int128 __udivti3(unsigned __int128, unsigned __int128), __umodti3(unsigned __int128, unsigned __int128);
static const __int128 big = (__int128)7 << 100;
CHECK(__divti3, __divti3(-big, (__int128)1 << 100) == -7)
CHECK(__modti3, __modti3(-big - 5, (__int128)1 << 100) == -5)
CHECK(__udivti3, __udivti3(big, (__int128)1 << 99) == 14)
CHECK(__umodti3, __umodti3(big + 3, (__int128)1 << 100) == 3)
extern double _Complex __muldc3(double, double, double, double), __divdc3(double, double, double, double);
extern float _Complex __mulsc3(float, float, float, float), __divsc3(float, float, float, float);
CHECK(__muldc3, DO(double _Complex z = __muldc3(1, 2, 3, 4); __real__ z == -5 && __imag__ z == 10))
CHECK(__mulsc3, DO(float _Complex z = __mulsc3(1, 2, 3, 4); __real__ z == -5 && __imag__ z == 10))
CHECK(__divdc3, DO(double _Complex z = __divdc3(-5, 10, 3, 4); __real__ z == 1 && __imag__ z == 2))
CHECK(__divsc3, DO(float _Complex z = __divsc3(-5, 10, 3, 4); __real__ z == 1 && __imag__ z == 2))
struct Pair { double sine, cosine; };
struct FloatPair { float sine, cosine; };
extern struct Pair sincos_pair(double) __asm__("___sincos_stret");
extern struct FloatPair sincos_floats(float) __asm__("___sincosf_stret");
CHECK(__sincos_stret, DO(struct Pair p = sincos_pair(1); SAME(p.sine, 0.8414709848) && SAME(p.cosine, 0.5403023059)))
CHECK(__sincosf_stret, DO(struct FloatPair p = sincos_floats(1); SAME(p.sine, 0.8414710) && SAME(p.cosine, 0.5403023)))
CHECK(__exp10, __exp10(3) == 1000)
extern void *__memcpy_chk(void *, const void *, size_t, size_t), *__memmove_chk(void *, const void *, size_t, size_t), *__memset_chk(void *, int, size_t, size_t);
CHECK(__memcpy_chk, DO(char t[4] = "xyz"; __memcpy_chk(t, "ab", 2, 4) == t && TEXT(t, "abz")))
CHECK(__memmove_chk, DO(char t[4] = "abc"; __memmove_chk(t + 1, t, 2, 3) == t + 1 && TEXT(t, "aab")))
CHECK(__memset_chk, DO(char t[4] = "abc"; __memset_chk(t, 'z', 2, 4) == t && TEXT(t, "zzc")))
extern uintptr_t __stack_chk_guard;
extern void __stack_chk_fail(void), __chkstk_darwin(void);
CHECK(__stack_chk_guard, __stack_chk_guard != 0)
CHECK(__chkstk_darwin, DO(volatile char large[100000]; large[0] = 1; large[99999] = 2; large[0] + large[99999] == 3))

// ---- memory and environment
CHECK(malloc, DO(char *p = malloc(1 << 20); p[(1 << 20) - 1] = 1; bool held = !((uintptr_t)p & 15); free(p); held))
CHECK(calloc, DO(int *p = calloc(100, 4); int sum = 0; for (int i = 0; i < 100; i++) sum |= p[i]; free(p); !sum))
CHECK(realloc, DO(char *p = malloc(4); strcpy(p, "abc"); p = realloc(p, 100000); bool held = TEXT(p, "abc"); free(p); held))
CHECK(free, DO(free(NULL); true))
CHECK(aligned_alloc, DO(void *p = aligned_alloc(4096, 8192); bool held = p && !((uintptr_t)p & 4095); free(p); held))
CHECK(posix_memalign, DO(void *p; bool held = !posix_memalign(&p, 256, 100) && !((uintptr_t)p & 255); free(p); held && posix_memalign(&p, 3, 8) == EINVAL))
CHECK(mmap, DO(char *p = mmap(NULL, 32768, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0); p != MAP_FAILED && (p[32767] = 5) == 5 && !p[0]))
CHECK(munmap, DO(void *p = mmap(NULL, 16384, PROT_READ, MAP_PRIVATE | MAP_ANON, -1, 0); munmap(p, 16384) == 0 && FAILS(munmap((void *)1, 5), EINVAL)))
CHECK(getpagesize, getpagesize() == 16384)
extern uintptr_t vm_page_size;
CHECK(vm_page_size, vm_page_size == 16384)
CHECK(setenv, setenv("MPSMITH_A", "1", 1) == 0 && TEXT(getenv("MPSMITH_A"), "1") && !setenv("MPSMITH_A", "2", 0) && TEXT(getenv("MPSMITH_A"), "1"))
CHECK(unsetenv, setenv("MPSMITH_B", "1", 1) == 0 && !unsetenv("MPSMITH_B") && !getenv("MPSMITH_B"))
CHECK(getenv, !getenv("MPSMITH_NEVER_SET"))

// ---- texts and bytes
CHECK(memchr, DO(const char *t = "abcb"; memchr(t, 'b', 4) == t + 1 && !memchr(t, 'z', 4)))
CHECK(memcmp, memcmp("ab", "ac", 2) < 0 && !memcmp("ab", "ac", 1))
CHECK(memcpy, DO(char t[3] = "xy"; memcpy(t, "ab", 2) == t && TEXT(t, "ab")))
CHECK(memmove, DO(char t[5] = "abcd"; memmove(t + 1, t, 3); TEXT(t, "aabc")))
CHECK(memset, DO(char t[4] = "abc"; memset(t, 'x', 3); TEXT(t, "xxx")))
CHECK(bzero, DO(char t[4] = "abc"; bzero(t, 3); !t[0] && !t[2]))
extern void memset_pattern16(void *, const void *, size_t);
CHECK(memset_pattern16, DO(char t[21] = ""; memset_pattern16(t, "0123456789abcdef", 20); TEXT(t, "0123456789abcdef0123")))
CHECK(strcat, DO(char t[8] = "ab"; strcat(t, "cd"); TEXT(t, "abcd")))
CHECK(strchr, DO(const char *t = "abcb"; strchr(t, 'b') == t + 1 && strchr(t, 0) == t + 4))
CHECK(strcmp, strcmp("a", "b") < 0 && !strcmp("a", "a") && strcmp("b", "a") > 0)
CHECK(strcpy, DO(char t[4]; strcpy(t, "abc"); TEXT(t, "abc")))
CHECK(strdup, DO(char *t = strdup("abc"); bool held = TEXT(t, "abc"); free(t); held))
CHECK(strlen, strlen("abc") == 3)
CHECK(strncat, DO(char t[8] = "ab"; strncat(t, "cdef", 2); TEXT(t, "abcd")))
CHECK(strncmp, !strncmp("abc", "abx", 2) && strncmp("abc", "abx", 3) < 0)
CHECK(strncpy, DO(char t[6] = "zzzzz"; strncpy(t, "ab", 4); t[0] == 'a' && !t[3] && t[4] == 'z'))
CHECK(strnlen, strnlen("abcdef", 3) == 3 && strnlen("ab", 3) == 2)
CHECK(strpbrk, DO(const char *t = "hello"; strpbrk(t, "lo") == t + 2 && !strpbrk(t, "z")))
CHECK(strrchr, DO(const char *t = "abcb"; strrchr(t, 'b') == t + 3))
CHECK(strspn, strspn("aabc", "ab") == 3)
CHECK(strcspn, strcspn("aabc", "c") == 3)
CHECK(strstr, DO(const char *t = "abcabx"; strstr(t, "abx") == t + 3 && !strstr(t, "z")))
CHECK(strtok_r, DO(char t[] = "a,b"; char *at; TEXT(strtok_r(t, ",", &at), "a") && TEXT(strtok_r(NULL, ",", &at), "b") && !strtok_r(NULL, ",", &at)))
CHECK(strcasecmp, !strcasecmp("AbC", "aBc") && strcasecmp("a", "B") < 0)
CHECK(strncasecmp, !strncasecmp("ABx", "aby", 2))
CHECK(strlcpy, DO(char t[4]; strlcpy(t, "abcdef", 4) == 6 && TEXT(t, "abc")))
CHECK(strlcat, DO(char t[5] = "ab"; strlcat(t, "cdef", 5) == 6 && TEXT(t, "abcd")))
CHECK(atof, atof("-2.5e1x") == -25)
CHECK(atoi, atoi(" -12x") == -12)
CHECK(atol, atol("123456789012") == 123456789012)
CHECK(atoll, atoll("-9007199254740993") == -9007199254740993)
CHECK(strtod, DO(char *end; strtod("0x1p-2z", &end) == 0.25 && *end == 'z' && isinf(strtod("inf", &end))))
CHECK(strtof, DO(char *end; strtof("1.5e2 ", &end) == 150 && *end == ' '))
CHECK(strtold, DO(char *end; strtold("2.25,", &end) == 2.25L && *end == ','))
CHECK(strtol, DO(char *end; errno = 0; strtol("-0x1fz", &end, 16) == -31 && *end == 'z' && strtol("99999999999999999999", NULL, 10) == LONG_MAX && errno == ERANGE))
CHECK(strtoll, strtoll("777", NULL, 8) == 511)
CHECK(strtoul, strtoul("ffffffffffffffff", NULL, 16) == ULONG_MAX)
CHECK(strtoull, strtoull("18446744073709551615", NULL, 10) == UINT64_MAX)
CHECK(lldiv, DO(lldiv_t d = lldiv(-7, 2); d.quot == -3 && d.rem == -1))
static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
CHECK(qsort, DO(int v[] = {3, 1, 2}; qsort(v, 3, sizeof *v, by_value); v[0] == 1 && v[1] == 2 && v[2] == 3))
CHECK(srand, DO(srand(5); int a = rand(); srand(5); rand() == a))
CHECK(rand, DO(int a = rand(), b = rand(), c = rand(); a >= 0 && b >= 0 && (a != b || b != c)))
extern uint32_t arc4random(void);
CHECK(arc4random, DO(uint32_t a = arc4random(), b = arc4random(), c = arc4random(); a != b || b != c))

// ---- wide characters and locales
static locale_t c_locale(void) {
  static locale_t made;
  if (!made) made = newlocale(LC_ALL_MASK, "C", NULL);
  return made;
}
static mbstate_t fresh(void) {
  mbstate_t state;
  memset(&state, 0, sizeof state);
  return state;
}
CHECK(wcslen, wcslen(L"abc") == 3)
CHECK(wmemchr, DO(const wchar_t *t = L"abc"; wmemchr(t, L'c', 3) == t + 2))
CHECK(wmemcmp, wmemcmp(L"ab", L"ac", 2) < 0)
CHECK(wmemcpy, DO(wchar_t t[3] = L""; wmemcpy(t, L"ab", 2); t[1] == L'b'))
CHECK(wmemmove, DO(wchar_t t[4] = L"abc"; wmemmove(t + 1, t, 2); t[2] == L'b'))
CHECK(wmemset, DO(wchar_t t[4] = L"abc"; wmemset(t, L'x', 2); t[1] == L'x' && t[2] == L'c'))
CHECK(wcstol, wcstol(L"-17", NULL, 10) == -17)
CHECK(wcstoul, wcstoul(L"ff", NULL, 16) == 255)
CHECK(wcstoll, wcstoll(L"-9007199254740993", NULL, 10) == -9007199254740993)
CHECK(wcstoull, wcstoull(L"18446744073709551615", NULL, 10) == UINT64_MAX)
CHECK(wcstod, wcstod(L"2.5", NULL) == 2.5)
CHECK(wcstof, wcstof(L"2.5", NULL) == 2.5f)
CHECK(wcstold, wcstold(L"2.5", NULL) == 2.5L)
CHECK(newlocale, c_locale() && !newlocale(LC_ALL_MASK, "xx_XX.nothing", NULL) && errno == ENOENT)
CHECK(freelocale, freelocale(newlocale(LC_ALL_MASK, "C", NULL)) == 0)
CHECK(setlocale, TEXT(setlocale(LC_ALL, NULL), "C") && !setlocale(LC_ALL, "xx_XX.nothing"))
CHECK(localeconv, TEXT(localeconv()->decimal_point, ".") && TEXT(localeconv()->thousands_sep, "") && localeconv()->int_n_sign_posn == CHAR_MAX)
CHECK(localeconv_l, TEXT(localeconv_l(c_locale())->decimal_point, "."))
extern int ___mb_cur_max(void), ___mb_cur_max_l(locale_t);
CHECK(___mb_cur_max, ___mb_cur_max() == 1)
CHECK(___mb_cur_max_l, ___mb_cur_max_l(c_locale()) == 1)
#define IS(c, mask) (_DefaultRuneLocale.__runetype[c] & (mask))
CHECK(_DefaultRuneLocale, IS('z', _CTYPE_A) && !IS('5', _CTYPE_A) && IS('f', _CTYPE_X) && IS('\t', _CTYPE_S) && IS('!', _CTYPE_P) && IS('Q', _CTYPE_U) && IS('q', _CTYPE_L) && IS(1, _CTYPE_C) && IS(' ', _CTYPE_B) && IS('~', _CTYPE_R) && IS('~', _CTYPE_G) && !IS(' ', _CTYPE_G) && IS('9', _CTYPE_D) && IS('b', 15) == 11 && _DefaultRuneLocale.__maplower['A'] == 'a' && _DefaultRuneLocale.__mapupper['z'] == 'Z')
extern int __maskrune(int, unsigned long), ___tolower_l(int, locale_t), ___toupper_l(int, locale_t);
extern int __maskrune_l(int, unsigned long, locale_t);
CHECK(__maskrune, __maskrune('a', _CTYPE_A) && !__maskrune('a', _CTYPE_D) && !__maskrune(300, _CTYPE_A))
CHECK(__maskrune_l, __maskrune_l('7', _CTYPE_D, c_locale()) && !__maskrune_l('7', _CTYPE_A, c_locale()))
extern int __tolower(int), __toupper(int);
CHECK(__tolower, __tolower('Q') == 'q' && __tolower(300) == 300)
CHECK(__toupper, __toupper('q') == 'Q')
CHECK(___tolower_l, ___tolower_l('Q', c_locale()) == 'q')
CHECK(___toupper_l, ___toupper_l('q', c_locale()) == 'Q')
CHECK(strtod_l, strtod_l("2.5", NULL, c_locale()) == 2.5)
CHECK(strtof_l, strtof_l("2.5", NULL, c_locale()) == 2.5f)
CHECK(strtold_l, strtold_l("2.5", NULL, c_locale()) == 2.5L)
CHECK(mbtowc_l, DO(wchar_t c; mbtowc_l(&c, "a", 1, c_locale()) == 1 && c == L'a'))
CHECK(btowc_l, btowc_l('a', c_locale()) == L'a' && btowc_l(EOF, c_locale()) == WEOF)
CHECK(wctob_l, wctob_l(L'a', c_locale()) == 'a' && wctob_l(0x20AC, c_locale()) == EOF)
CHECK(mbrtowc_l, DO(wchar_t c; mbstate_t s = fresh(); mbrtowc_l(&c, "xy", 2, &s, c_locale()) == 1 && c == L'x'))
CHECK(wcrtomb_l, DO(char c[16]; mbstate_t s = fresh(); wcrtomb_l(c, L'x', &s, c_locale()) == 1 && c[0] == 'x'))
CHECK(mbrlen_l, DO(mbstate_t s = fresh(); mbrlen_l("xy", 2, &s, c_locale()) == 1))
CHECK(mbsrtowcs_l, DO(wchar_t t[4]; const char *f = "abc"; mbstate_t s = fresh(); mbsrtowcs_l(t, &f, 4, &s, c_locale()) == 3 && t[2] == L'c'))
CHECK(mbsnrtowcs_l, DO(wchar_t t[4]; const char *f = "abc"; mbstate_t s = fresh(); mbsnrtowcs_l(t, &f, 2, 4, &s, c_locale()) == 2 && t[1] == L'b'))
CHECK(wcsnrtombs_l, DO(char t[4]; const wchar_t *f = L"abc"; mbstate_t s = fresh(); wcsnrtombs_l(t, &f, 2, 4, &s, c_locale()) == 2 && t[1] == 'b'))
CHECK(strcoll_l, strcoll_l("a", "b", c_locale()) < 0 && !strcoll_l("a", "a", c_locale()))
CHECK(strxfrm_l, DO(char t[4]; strxfrm_l(t, "abc", 4, c_locale()) == 3 && TEXT(t, "abc")))
CHECK(wcscoll_l, wcscoll_l(L"a", L"b", c_locale()) < 0)
CHECK(wcsxfrm_l, DO(wchar_t t[4]; wcsxfrm_l(t, L"abc", 4, c_locale()) == 3 && t[2] == L'c'))

// ---- formats: arguments that Darwin passes on the stack
static bool formats(const char *expected, const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return length == (int)strlen(expected) && TEXT(text, expected);
}
static bool allocates(const char *expected, const char *format, ...) {
  char *text;
  va_list arguments;
  va_start(arguments, format);
  bool held = vasprintf(&text, format, arguments) == (int)strlen(expected) && TEXT(text, expected);
  va_end(arguments);
  return held;
}
static int prints(FILE *file, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vfprintf(file, format, arguments);
  va_end(arguments);
  return length;
}
static int scans(const char *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int found = vsscanf(text, format, arguments);
  va_end(arguments);
  return found;
}
static int scans_file(FILE *file, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int found = vfscanf(file, format, arguments);
  va_end(arguments);
  return found;
}
CHECK(vsnprintf, formats("1 -2 0x3 x abc 1.500000 7 2.25%", "%d %ld %p %c %s %f %*d%.3Lg%%", 1, -2L, (void *)3, 'x', "abc", 1.5, 2, 7, 2.25L) == false && formats("1 -2 x abc 1.500000  7 2.25%", "%d %ld %c %s %f %*d %.3Lg%%", 1, -2L, 'x', "abc", 1.5, 2, 7, 2.25L))
CHECK(vasprintf, allocates("5 a 2.5", "%d %s %g", 5, "a", 2.5))
CHECK(snprintf, DO(char t[8]; snprintf(t, sizeof t, "%d-%s", 12345, "abcdef") == 12 && TEXT(t, "12345-a")))
CHECK(sprintf, DO(char t[64]; sprintf(t, "%lld %Lf %s", 1ll << 40, 0.5L, "z") == 24 && TEXT(t, "1099511627776 0.500000 z")))
CHECK(snprintf_l, DO(char t[32]; snprintf_l(t, sizeof t, c_locale(), "%.2f %d", 1.25, 3) == 6 && TEXT(t, "1.25 3")))
CHECK(asprintf, DO(char *t; asprintf(&t, "%d %.1f", 3, 0.5) == 5 && TEXT(t, "3 0.5")))
CHECK(asprintf_l, DO(char *t; asprintf_l(&t, c_locale(), "%d", 3) == 1 && TEXT(t, "3")))
CHECK(sscanf, DO(int a; double b; long double c; char t[8]; sscanf("5 2.5 1.25 abc", "%d %lf %Lf %7s", &a, &b, &c, t) == 4 && a == 5 && b == 2.5 && c == 1.25L && TEXT(t, "abc")))
CHECK(sscanf_l, DO(int a; sscanf_l("17", c_locale(), "%d", &a) == 1 && a == 17))
CHECK(vsscanf, DO(int a; float b; scans("3 0.5", "%d %f", &a, &b) == 2 && a == 3 && b == 0.5f))
CHECK(vfscanf, WITH("41 x", "r", DO(int a; char c; scans_file(f, "%d %c", &a, &c) == 2 && a == 41 && c == 'x')))
CHECK(fprintf, DO(FILE *f = fopen(path("p"), "w+"); char t[16] = ""; bool held = fprintf(f, "%d %s", 5, "abc") == 5; rewind(f); fgets(t, 16, f); fclose(f); held && TEXT(t, "5 abc")))
CHECK(vfprintf, DO(FILE *f = fopen(path("v"), "w+"); char t[16] = ""; bool held = prints(f, "%g", 2.5) == 3; rewind(f); fgets(t, 16, f); fclose(f); held && TEXT(t, "2.5")))
CHECK(printf, printf("%s %d\n", "printf prints", 1) == 16)
CHECK(puts, puts("puts prints") >= 0)
CHECK(putchar, putchar('\n') == '\n')

// ---- streams
extern int putc_function(int, FILE *) __asm__("_putc"), getc_function(FILE *) __asm__("_getc");
CHECK(fopen, DO(errno = 0; !fopen(path("nothing"), "r") && errno == ENOENT) && WITH("a", "r", true))
CHECK(fdopen, DO(int n = open(file_with("abc"), O_RDONLY); FILE *f = fdopen(n, "r"); char t[4] = ""; fread(t, 1, 3, f); fclose(f); TEXT(t, "abc")))
CHECK(freopen, DO(FILE *f = fopen(file_with("abc"), "r"); const char *other = path("other"); FILE *w = fopen(other, "w"); fputs("z", w); fclose(w); f = freopen(other, "r", f); int c = f ? getc(f) : 0; if (f) fclose(f); c == 'z'))
CHECK(fclose, DO(FILE *f = fopen(file_with("abc"), "r"); fclose(f) == 0))
CHECK(fread, WITH("abcdef", "r", DO(char t[8] = ""; fread(t, 2, 4, f) == 3 && TEXT(t, "abcdef"))))
CHECK(fwrite, DO(FILE *f = fopen(path("w"), "w"); bool held = fwrite("abcd", 2, 2, f) == 2; fclose(f); struct stat s; held && !stat(path("w"), &s) && s.st_size == 4))
CHECK(fputc, DO(FILE *f = fopen(path("c"), "w+"); fputc('x', f); rewind(f); int c = getc_function(f); fclose(f); c == 'x'))
CHECK(putc, DO(FILE *f = fopen(path("d"), "w+"); putc_function('y', f); rewind(f); int c = getc_function(f); fclose(f); c == 'y'))
extern int __swbuf(int, FILE *), __srget(FILE *);
CHECK(__swbuf, DO(FILE *f = fopen(path("s"), "w+"); putc_unlocked('q', f); __swbuf('r', f); rewind(f); bool held = getc(f) == 'q' && getc(f) == 'r'; fclose(f); held))
CHECK(__srget, WITH("mn", "r", getc_unlocked(f) == 'm' && __srget(f) == 'n'))
CHECK(fputs, DO(FILE *f = fopen(path("f"), "w"); bool held = fputs("abc", f) >= 0; fclose(f); held))
CHECK(getc, WITH("k", "r", getc_function(f) == 'k' && getc_function(f) == EOF))
CHECK(ungetc, WITH("ab", "r", getc(f) == 'a' && ungetc('z', f) == 'z' && getc(f) == 'z' && getc(f) == 'b'))
CHECK(fgets, WITH("one\ntwo", "r", DO(char t[16]; fgets(t, 16, f) && TEXT(t, "one\n") && fgets(t, 3, f) && TEXT(t, "tw"))))
CHECK(fflush, DO(FILE *f = fopen(path("g"), "w"); fputs("abc", f); fflush(f); struct stat s; stat(path("g"), &s); fclose(f); s.st_size == 3))
CHECK(fseek, WITH("abcdef", "r", !fseek(f, -2, SEEK_END) && getc(f) == 'e'))
CHECK(fseeko, WITH("abcdef", "r", !fseeko(f, 3, SEEK_SET) && getc(f) == 'd'))
CHECK(ftell, WITH("abcdef", "r", DO(getc(f); getc(f); ftell(f) == 2)))
CHECK(ftello, WITH("abcdef", "r", DO(getc(f); ftello(f) == 1)))
CHECK(rewind, WITH("abc", "r", DO(getc(f); rewind(f); getc(f) == 'a')))
CHECK(fileno, fileno(stdin) == 0 && fileno(stdout) == 1 && fileno(stderr) == 2)
CHECK(feof, WITH("a", "r", DO(getc(f); bool before = feof(f); getc(f); !before && feof(f))))
CHECK(ferror, WITH("a", "r", DO(bool before = ferror(f); fputc('x', f); !before && ferror(f))))
CHECK(setbuf, DO(FILE *f = fopen(path("h"), "w"); setbuf(f, NULL); fputc('x', f); struct stat s; stat(path("h"), &s); fclose(f); s.st_size == 1))
CHECK(flockfile, DO(flockfile(stdout); funlockfile(stdout); true))
CHECK(funlockfile, DO(flockfile(stderr); funlockfile(stderr); flockfile(stderr); funlockfile(stderr); true))
CHECK(getwc, WITH("ab", "r", getwc(f) == L'a'))
CHECK(fputwc, DO(FILE *f = fopen(path("i"), "w+"); fputwc(L'x', f); rewind(f); wint_t c = getwc(f); fclose(f); c == L'x'))
CHECK(ungetwc, WITH("ab", "r", getwc(f) == L'a' && ungetwc(L'z', f) == L'z' && getwc(f) == L'z'))
CHECK(__stdinp, fileno(__stdinp) == 0)
CHECK(__stdoutp, fprintf(__stdoutp, "to stdout\n") == 10)
CHECK(__stderrp, fprintf(__stderrp, "to stderr\n") == 10)
CHECK(perror, DO(errno = ENOENT; perror("perror prints"); true))

// ---- files and folders
CHECK(open, FAILS(open(path("none"), O_RDONLY), ENOENT) && DO(int n = open(path("o"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640); struct stat s; n >= 0 && !fstat(n, &s) && (s.st_mode & 0777) == 0640 && FAILS(open(path("o"), O_RDWR | O_CREAT | O_EXCL, 0640), EEXIST)))
CHECK(shm_open, DO(shm_unlink("/mpsmith-check"); int n = shm_open("/mpsmith-check", O_RDWR | O_CREAT | O_EXCL, 0600); n >= 0 && !close(n) && FAILS(shm_open("/mpsmith-check", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST) && !shm_unlink("/mpsmith-check")))
CHECK(shm_unlink, FAILS(shm_unlink("/mpsmith-none"), ENOENT))
CHECK(fcntl, DO(int n = open(file_with("a"), O_RDONLY); bool held = fcntl(n, F_GETFD) == 0 && !fcntl(n, F_SETFD, FD_CLOEXEC) && fcntl(n, F_GETFD) == FD_CLOEXEC; close(n); held))
CHECK(close, DO(int n = open(file_with("a"), O_RDONLY); close(n) == 0 && FAILS(close(n), EBADF)))
extern int close_nocancel(int) __asm__("_close$NOCANCEL");
CHECK_NAMED("close$NOCANCEL", close_nocancel, DO(int n = open(file_with("a"), O_RDONLY); close_nocancel(n) == 0 && FAILS(close(n), EBADF)))
CHECK(read, DO(char t[4] = ""; int n = open(file_with("abc"), O_RDONLY); bool held = read(n, t, 2) == 2 && TEXT(t, "ab"); close(n); held))
CHECK(write, DO(int n = open(path("x"), O_WRONLY | O_CREAT | O_TRUNC, 0600); write(n, "ab", 2); write(n, "c", 1); struct stat s; fstat(n, &s); close(n); s.st_size == 3))
CHECK(pread, DO(char t[4] = ""; int n = open(file_with("abcdef"), O_RDONLY); bool held = pread(n, t, 2, 3) == 2 && TEXT(t, "de"); close(n); held))
CHECK(pwrite, DO(int n = open(path("y"), O_RDWR | O_CREAT, 0600); pwrite(n, "ab", 2, 5); struct stat s; fstat(n, &s); close(n); s.st_size == 7))
CHECK(lseek, DO(int n = open(file_with("abcdef"), O_RDONLY); bool held = lseek(n, -1, SEEK_END) == 5; close(n); held))
CHECK(fsync, DO(int n = open(file_with("a"), O_RDWR); bool held = fsync(n) == 0; close(n); held))
CHECK(ftruncate, DO(int n = open(file_with("abcdef"), O_RDWR); ftruncate(n, 2); struct stat s; fstat(n, &s); close(n); s.st_size == 2))
CHECK(dup2, DO(int n = open(file_with("a"), O_RDONLY); bool held = dup2(n, 50) == 50; char c; held = held && read(50, &c, 1) == 1; close(50); close(n); held))
CHECK(pipe, DO(int ends[2]; char c; pipe(ends) == 0 && write(ends[1], "x", 1) == 1 && read(ends[0], &c, 1) == 1 && c == 'x'))
CHECK(access, access(file_with("a"), R_OK) == 0 && FAILS(access(path("none"), F_OK), ENOENT))
CHECK(stat, DO(struct stat s; stat(file_with("abc"), &s) == 0 && S_ISREG(s.st_mode) && s.st_size == 3 && s.st_nlink == 1 && s.st_mtimespec.tv_sec > 1600000000 && s.st_uid == geteuid() && s.st_blksize > 0) && FAILS(stat(path("none"), &(struct stat){0}), ENOENT))
CHECK(fstat, DO(struct stat s; int n = open(file_with("abcd"), O_RDONLY); bool held = fstat(n, &s) == 0 && s.st_size == 4; close(n); held))
CHECK(lstat, DO(struct stat s; symlink("nowhere", path("dangling")); lstat(path("dangling"), &s) == 0 && S_ISLNK(s.st_mode)))
CHECK(chdir, DO(char old[512], now[512]; getcwd(old, 512); bool held = chdir(folder) == 0; getcwd(now, 512); chdir(old); held && strstr(now, folder)))
CHECK(getcwd, DO(char t[512]; getcwd(t, 512) == t && t[0] == '/' && DO(errno = 0; !getcwd(t, 1) && errno == ERANGE)))
CHECK(mkdir, mkdir(path("m"), 0700) == 0 && FAILS(mkdir(path("m"), 0700), EEXIST))
CHECK(rmdir, DO(mkdir(path("r"), 0700); mkdir(path("r/s"), 0700); FAILS(rmdir(path("r")), ENOTEMPTY) && !rmdir(path("r/s")) && !rmdir(path("r"))))
CHECK(mkdtemp, DO(char t[] = "/tmp/mpsmith-XXXXXX"; mkdtemp(t) == t && !rmdir(t)))
CHECK(mkstemp, DO(char t[] = "/tmp/mpsmith-XXXXXX"; int n = mkstemp(t); n >= 0 && !close(n) && !unlink(t)))
CHECK(link, DO(struct stat s; link(file_with("a"), path("linked")) == 0 && !stat(path("linked"), &s) && s.st_nlink == 2 && !unlink(path("linked"))))
CHECK(symlink, symlink("target", path("sym")) == 0)
CHECK(readlink, DO(char t[16] = ""; symlink("target", path("sym2")); readlink(path("sym2"), t, 16) == 6 && TEXT(t, "target")))
CHECK(rename, DO(file_with("a"); rename(path("text"), path("renamed")) == 0 && access(path("text"), F_OK) && !access(path("renamed"), F_OK)))
CHECK(remove, remove(file_with("a")) == 0 && access(path("text"), F_OK))
CHECK(unlink, unlink(file_with("a")) == 0 && FAILS(unlink(path("text")), ENOENT))
CHECK(chmod, DO(struct stat s; const char *n = file_with("a"); chmod(n, 0600) == 0 && !stat(n, &s) && (s.st_mode & 0777) == 0600))
CHECK(fchmod, DO(struct stat s; int n = open(file_with("a"), O_RDONLY); fchmod(n, 0644); fstat(n, &s); close(n); (s.st_mode & 0777) == 0644))
CHECK(isatty, DO(int n = open(file_with("a"), O_RDONLY); bool held = isatty(n) == 0; close(n); held))
CHECK(opendir, DO(DIR *d = opendir(folder); bool held = d != NULL; closedir(d); errno = 0; held && !opendir(path("none")) && errno == ENOENT))
CHECK(readdir, DO(mkdir(path("e"), 0700); fclose(fopen(path("e/inner"), "w")); DIR *d = opendir(path("e")); bool found = false; for (struct dirent *e; (e = readdir(d));) found |= TEXT(e->d_name, "inner") && e->d_type == DT_REG && e->d_namlen == 5 && e->d_ino; closedir(d); found))
CHECK(closedir, closedir(opendir(folder)) == 0)
extern char *realpath_of(const char *, char *) __asm__("_realpath$DARWIN_EXTSN");
CHECK_NAMED("realpath$DARWIN_EXTSN", realpath_of, DO(char t[1024]; realpath_of("/tmp/../tmp/.", t) && TEXT(t, "/tmp")))
CHECK(pathconf, pathconf("/", _PC_PATH_MAX) >= 255 && pathconf("/", _PC_NAME_MAX) >= 14)

// ---- errors
CHECK(__error, DO(errno = 7; bool kept = errno == 7; close(-1); kept && errno == EBADF && DO(errno = 0; malloc(1); errno == 0)))
CHECK(strerror, TEXT(strerror(ENOENT), "No such file or directory") && strstr(strerror(ETIMEDOUT), "timed out") && strstr(strerror(EAGAIN), "emporarily unavailable"))
CHECK(strerror_r, DO(char t[64]; strerror_r(ENOENT, t, 64) == 0 && TEXT(t, "No such file or directory") && strerror_r(ENOENT, t, 4) == ERANGE))

// ---- time
CHECK(time, DO(time_t t; time(&t) == t && t > 1600000000))
static struct tm moment(void) { return (struct tm){.tm_year = 101, .tm_mon = 1, .tm_mday = 3, .tm_hour = 4, .tm_min = 5, .tm_sec = 6}; }
CHECK(timegm, DO(struct tm t = moment(); timegm(&t) == 981173106 && t.tm_wday == 6 && t.tm_yday == 33))
CHECK(mktime, DO(struct tm t = moment(); time_t s = mktime(&t); struct tm b; localtime_r(&s, &b); b.tm_hour == 4 && b.tm_mday == 3))
CHECK(gmtime_r, DO(time_t s = 981173106; struct tm t; gmtime_r(&s, &t) == &t && t.tm_year == 101 && t.tm_sec == 6 && t.tm_gmtoff == 0))
CHECK(localtime, DO(time_t s = 981173106; struct tm t; TEXT(localtime(&s)->tm_zone, localtime_r(&s, &t)->tm_zone)))
CHECK(localtime_r, DO(time_t s = 981173106; struct tm t; localtime_r(&s, &t) == &t && t.tm_min == 5))
CHECK(strftime, DO(struct tm t = moment(); char b[32]; strftime(b, 32, "%Y-%m-%d %H:%M:%S", &t) == 19 && TEXT(b, "2001-02-03 04:05:06")))
CHECK(strftime_l, DO(struct tm t = moment(); char b[32]; strftime_l(b, 32, "%b %d", &t, c_locale()) == 6 && TEXT(b, "Feb 03")))
CHECK(gettimeofday, DO(struct timeval t; gettimeofday(&t, NULL) == 0 && t.tv_sec > 1600000000 && t.tv_usec >= 0 && t.tv_usec < 1000000))
static double seconds(clockid_t clock) {
  struct timespec t = {-1, -1};
  clock_gettime(clock, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
CHECK(clock_gettime, seconds(CLOCK_REALTIME) > 1.6e9 && seconds(CLOCK_MONOTONIC) > 0 && seconds(CLOCK_UPTIME_RAW) > 0 && seconds(CLOCK_MONOTONIC_RAW) > 0 && seconds(CLOCK_PROCESS_CPUTIME_ID) < 1e5 && seconds(CLOCK_THREAD_CPUTIME_ID) < 1e5)
CHECK(clock_gettime_nsec_np, DO(uint64_t t = clock_gettime_nsec_np(CLOCK_REALTIME); t / 1000000000 > 1600000000 && clock_gettime_nsec_np(CLOCK_UPTIME_RAW) > 0))
CHECK(nanosleep, DO(double t = seconds(CLOCK_MONOTONIC); nanosleep(&(struct timespec){0, 2000000}, NULL) == 0 && seconds(CLOCK_MONOTONIC) - t >= 0.002))
CHECK(usleep, DO(double t = seconds(CLOCK_MONOTONIC); usleep(2000) == 0 && seconds(CLOCK_MONOTONIC) - t >= 0.002))
CHECK(sleep, sleep(0) == 0)
CHECK(mach_absolute_time, DO(uint64_t a = mach_absolute_time(); usleep(1000); mach_absolute_time() - a >= 1000000))
CHECK(mach_continuous_time, DO(uint64_t a = mach_continuous_time(); usleep(1000); mach_continuous_time() > a))
CHECK(mach_timebase_info, DO(struct { uint32_t parts[2]; } t; mach_timebase_info((void *)&t) == 0 && t.parts[0] && t.parts[1]))

// ---- the machine
CHECK(getpid, getpid() > 0)
CHECK(getppid, getppid() >= 0)
CHECK(geteuid, DO(struct stat s; stat(file_with("a"), &s); s.st_uid == geteuid()))
CHECK(gethostname, DO(char t[256] = ""; gethostname(t, 256) == 0 && t[0]))
CHECK(uname, DO(struct utsname u; uname(&u) == 0 && TEXT(u.sysname, "Darwin") && TEXT(u.machine, "arm64") && atoi(u.release) == 23))
CHECK(sysconf, sysconf(_SC_THREAD_STACK_MIN) == 16384 && sysconf(_SC_THREAD_THREADS_MAX) == -1 && sysconf(_SC_THREADS) == 200112 && sysconf(_SC_PAGESIZE) == 16384 && sysconf(_SC_NPROCESSORS_ONLN) >= 1 && sysconf(_SC_NPROCESSORS_CONF) >= 1 && sysconf(_SC_PHYS_PAGES) > 1000 && sysconf(_SC_OPEN_MAX) > 10)
CHECK(sysctl, DO(int name[] = {CTL_HW, HW_NCPU}, n = 0; size_t s = sizeof n; sysctl(name, 2, &n, &s, NULL, 0) == 0 && n == sysconf(_SC_NPROCESSORS_ONLN)))
CHECK(sysctlbyname, DO(uint64_t n = 0; size_t s = sizeof n; sysctlbyname("hw.memsize", &n, &s, NULL, 0) == 0 && n / 16384 == (uint64_t)sysconf(_SC_PHYS_PAGES) && DO(uint64_t c[3] = {0}; size_t z = sizeof c; !sysctlbyname("hw.cacheconfig", c, &z, NULL, 0) && z == 24 && c[1] == 1) && FAILS(sysctlbyname("hw.nothing", &n, &s, NULL, 0), ENOENT)))
CHECK(mach_task_self_, mach_task_self_ != 0)
CHECK(mach_host_self, mach_host_self() != 0 && mach_host_self() == mach_host_self())
CHECK(mach_port_deallocate, mach_port_deallocate(mach_task_self_, mach_host_self()) == KERN_SUCCESS)
CHECK(host_info, DO(host_basic_info_data_t i; mach_msg_type_number_t n = HOST_BASIC_INFO_COUNT; host_info(mach_host_self(), HOST_BASIC_INFO, (host_info_t)&i, &n) == KERN_SUCCESS && n == HOST_BASIC_INFO_COUNT && i.avail_cpus == sysconf(_SC_NPROCESSORS_ONLN) && i.max_mem / 16384 == (uint64_t)sysconf(_SC_PHYS_PAGES) && i.cpu_type == CPU_TYPE_ARM64))
CHECK(sigaction, DO(struct sigaction a; memset(&a, 0xAA, sizeof a); sigaction(SIGUSR1, NULL, &a) == 0 && a.sa_handler == SIG_DFL && a.sa_flags == 0 && FAILS(sigaction(77, NULL, &a), EINVAL)))
CHECK(catopen, DO(errno = 0; catopen("mpsmith-none", 0) == (nl_catd)-1 && errno == ENOENT))
CHECK(catgets, TEXT(catgets((nl_catd)-1, 1, 1, "own"), "own"))
CHECK(catclose, FAILS(catclose((nl_catd)-1), EBADF))
CHECK(getrusage, DO(struct rusage u; getrusage(RUSAGE_SELF, &u) == 0 && u.ru_maxrss > 1000000 && u.ru_maxrss < 1l << 40))
CHECK(getrlimit, DO(struct rlimit l; getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur >= 16 && l.rlim_cur <= l.rlim_max && FAILS(getrlimit(77, &l), EINVAL)))

// ---- libraries
extern const struct mach_header_64 *header_here(void);
CHECK(_dyld_image_count, _dyld_image_count() >= 1)
CHECK(_dyld_get_image_name, strstr(_dyld_get_image_name(_dyld_image_count() - 1), "checks") && !_dyld_get_image_name(1000))
CHECK(_dyld_get_image_header, _dyld_get_image_header(0)->magic == 0xFEEDFACF)
extern bool _dyld_find_unwind_sections(void *, void *);
CHECK(_dyld_find_unwind_sections, DO(void *found[5] = {0}; _dyld_find_unwind_sections((void *)holds___error, found) && found[0] == _dyld_get_image_header(_dyld_image_count() - 1) && !_dyld_find_unwind_sections(found, found)))
CHECK(_dyld_register_func_for_remove_image, DO(_dyld_register_func_for_remove_image(NULL); true))
CHECK(_NSGetExecutablePath, DO(char t[4096]; uint32_t n = sizeof t, small = 2; _NSGetExecutablePath(t, &n) == 0 && t[0] == '/' && _NSGetExecutablePath(t, &small) == -1 && small > 2))
extern char ***_NSGetEnviron(void);
CHECK(_NSGetEnviron, *_NSGetEnviron() != NULL)
__attribute__((used, section("__DATA,mpsmith"))) static const char note[8] = "noted";
CHECK(getsectiondata, DO(unsigned long n = 0; const void *h = _dyld_get_image_header(_dyld_image_count() - 1); const char *d = (const char *)getsectiondata(h, "__DATA", "mpsmith", &n); d == note && n == 8 && !getsectiondata(h, "__DATA", "none", &n)))
CHECK(backtrace, DO(void *p[32]; int n = backtrace(p, 32); Dl_info i; n >= 2 && dladdr(p[1], &i) && backtrace(p, 1) == 1))
CHECK(backtrace_symbols, DO(void *p[1] = {(void *)holds___error}; char **t = backtrace_symbols(p, 1); bool held = strstr(t[0], "checks"); free(t); held))
CHECK(dladdr, DO(Dl_info i; dladdr((void *)holds___error, &i) && strstr(i.dli_fname, "checks") && i.dli_fbase == (void *)_dyld_get_image_header(_dyld_image_count() - 1) && !dladdr(&i, &i)))
CHECK(dlopen, dlopen(NULL, RTLD_NOW) && !dlopen("/nothing.dylib", RTLD_NOW))
CHECK(dlsym, dlsym(RTLD_DEFAULT, "strlen") && dlsym(RTLD_DEFAULT, "check_shims") && !dlsym(RTLD_DEFAULT, "no_such_name"))
CHECK(dlerror, DO(dlsym(RTLD_DEFAULT, "no_such_name"); const char *t = dlerror(); t && strstr(t, "no_such_name") && !dlerror()))
CHECK(dlclose, dlclose(dlopen(NULL, RTLD_NOW)) == 0)

// ---- threads
static void *run_in_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  void *value = NULL;
  if (pthread_create(&thread, NULL, function, argument)) return NULL;
  pthread_join(thread, &value);
  return value;
}
static _Thread_local int thread_number = 42;
static _Thread_local char thread_zero[64];
static void *own_variables(void *argument) {
  bool held = thread_number == 42 && !thread_zero[63];
  thread_number = 7;
  thread_zero[63] = 1;
  return held ? argument : NULL;
}
CHECK(_tlv_bootstrap, DO(thread_number = 5; bool held = run_in_thread(own_variables, &checks) == &checks && thread_number == 5; thread_number = 42; held))
extern void _tlv_atexit(void (*)(void *), void *);
static int destroyed, destroyed_second;
static void destroy(void *value) { destroyed = destroyed * 10 + *(int *)value; }
static void *with_destructors(void *unused) {
  static int one = 1, two = 2;
  _tlv_atexit(destroy, &one);
  _tlv_atexit(destroy, &two);
  return unused;
}
CHECK(_tlv_atexit, DO(destroyed = 0; run_in_thread(with_destructors, NULL); destroyed == 21))
extern int __cxa_atexit(void (*)(void *), void *, void *);
static void say(void *text) { fputs(text, stdout); }
CHECK(__cxa_atexit, __cxa_atexit(say, "exit: second\n", NULL) == 0 && __cxa_atexit(say, "exit: first\n", NULL) == 0)
static void *square(void *number) { return (void *)((intptr_t)number * (intptr_t)number); }
CHECK(pthread_create, run_in_thread(square, (void *)12) == (void *)144)
CHECK(pthread_join, DO(pthread_t t; void *v; pthread_create(&t, NULL, square, (void *)3); pthread_join(t, &v) == 0 && v == (void *)9))
static void *deep(void *unused) { volatile char room[400000]; room[0] = room[399999] = 1; return room[0] ? &checks : unused; }
CHECK(pthread_attr_init, DO(pthread_attr_t a; pthread_t t; void *v; !pthread_attr_init(&a) && !pthread_create(&t, &a, deep, NULL) && !pthread_join(t, &v) && v == &checks))
CHECK(pthread_attr_destroy, DO(pthread_attr_t a; pthread_attr_init(&a); pthread_attr_destroy(&a) == 0))
CHECK(pthread_attr_setstacksize, DO(pthread_attr_t a; pthread_t t; pthread_attr_init(&a); !pthread_attr_setstacksize(&a, 1 << 21) && !pthread_create(&t, &a, deep, NULL) && !pthread_join(t, NULL)))
CHECK(pthread_attr_setdetachstate, DO(pthread_attr_t a; pthread_t t; pthread_attr_init(&a); !pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED) && !pthread_create(&t, &a, square, NULL) && !pthread_attr_setdetachstate(&a, PTHREAD_CREATE_JOINABLE) && !pthread_create(&t, &a, square, (void *)2) && !pthread_join(t, NULL)))
CHECK(pthread_detach, DO(pthread_t t; pthread_create(&t, NULL, square, NULL); pthread_detach(t) == 0))
CHECK(pthread_self, pthread_self() == pthread_self())
CHECK(pthread_equal, pthread_equal(pthread_self(), pthread_self()))
CHECK(pthread_setname_np, pthread_setname_np("mpsmith-check") == 0)
CHECK(pthread_getname_np, DO(char t[64] = ""; pthread_setname_np("named") == 0 && !pthread_getname_np(pthread_self(), t, 64) && TEXT(t, "named")))
static void *number_of_thread(void *unused) { uint64_t n = 0; pthread_threadid_np(NULL, &n); return (void *)(n + !unused - 1); }
CHECK(pthread_threadid_np, number_of_thread(NULL) && run_in_thread(number_of_thread, NULL) != number_of_thread(NULL))
static void *port_of_thread(void *unused) { return (void *)(uintptr_t)(pthread_mach_thread_np(pthread_self()) + !unused - 1); }
CHECK(pthread_mach_thread_np, port_of_thread(NULL) && run_in_thread(port_of_thread, NULL) != port_of_thread(NULL))
CHECK(pthread_setcancelstate, DO(int old = -1; !pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) && old == PTHREAD_CANCEL_ENABLE && !pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) && old == PTHREAD_CANCEL_DISABLE))
CHECK(pthread_setcanceltype, DO(int old = -1; !pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old) && old == PTHREAD_CANCEL_DEFERRED && !pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old) && old == PTHREAD_CANCEL_ASYNCHRONOUS))
CHECK(sched_yield, sched_yield() == 0)
CHECK(pthread_atfork, pthread_atfork(NULL, NULL, NULL) == 0)
static pthread_key_t key;
static void *with_value(void *value) { pthread_setspecific(key, value); return NULL; }
CHECK(pthread_key_create, DO(static int three = 3; destroyed = 0; pthread_key_create(&key, destroy) == 0 && !run_in_thread(with_value, &three) && destroyed == 3))
CHECK(pthread_setspecific, DO(pthread_key_t k; pthread_key_create(&k, NULL); pthread_setspecific(k, &k) == 0 && pthread_getspecific(k) == &k))
CHECK(pthread_getspecific, DO(pthread_key_t k; pthread_key_create(&k, NULL); !pthread_getspecific(k)))
CHECK(pthread_key_delete, DO(pthread_key_t k; pthread_key_create(&k, NULL); pthread_key_delete(k) == 0))

static pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static void *count_up(void *unused) {
  for (int i = 0; i < 2000; i++) {
    pthread_mutex_lock(&counter_lock);
    counter++;
    pthread_mutex_unlock(&counter_lock);
  }
  return unused;
}
CHECK(pthread_mutex_lock, DO(pthread_t t[4]; counter = 0; for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, count_up, NULL); for (int i = 0; i < 4; i++) pthread_join(t[i], NULL); counter == 8000))
CHECK(pthread_mutex_trylock, DO(static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; !pthread_mutex_trylock(&m) && pthread_mutex_trylock(&m) == EBUSY && !pthread_mutex_unlock(&m)))
CHECK(pthread_mutex_unlock, DO(static pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER; !pthread_mutex_lock(&m) && pthread_mutex_lock(&m) == EDEADLK && !pthread_mutex_unlock(&m) && pthread_mutex_unlock(&m) == EPERM))
CHECK(pthread_mutex_init, DO(pthread_mutex_t m; memset(&m, 0xAA, sizeof m); !pthread_mutex_init(&m, NULL) && !pthread_mutex_lock(&m) && !pthread_mutex_unlock(&m)) && DO(static pthread_mutex_t r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER; !pthread_mutex_lock(&r) && !pthread_mutex_lock(&r) && !pthread_mutex_unlock(&r) && !pthread_mutex_unlock(&r)))
CHECK(pthread_mutex_destroy, DO(pthread_mutex_t m; pthread_mutex_init(&m, NULL); pthread_mutex_destroy(&m) == 0))
CHECK(pthread_mutexattr_init, DO(pthread_mutexattr_t a; memset(&a, 0xAA, sizeof a); pthread_mutex_t m; !pthread_mutexattr_init(&a) && !pthread_mutex_init(&m, &a) && !pthread_mutex_lock(&m) && pthread_mutex_trylock(&m) == EBUSY))
CHECK(pthread_mutexattr_settype, DO(pthread_mutexattr_t a; pthread_mutex_t m; pthread_mutexattr_init(&a); !pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE) && !pthread_mutex_init(&m, &a) && !pthread_mutex_lock(&m) && !pthread_mutex_trylock(&m) && pthread_mutexattr_settype(&a, 9) == EINVAL))
CHECK(pthread_mutexattr_destroy, DO(pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_destroy(&a) == 0))
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static void *try_to_write(void *unused) { (void)unused; int e = pthread_rwlock_trywrlock(&shared); if (!e) pthread_rwlock_unlock(&shared); return (void *)(intptr_t)(e + 1); }
static void *try_to_read(void *unused) { (void)unused; int e = pthread_rwlock_tryrdlock(&shared); if (!e) pthread_rwlock_unlock(&shared); return (void *)(intptr_t)(e + 1); }
CHECK(pthread_rwlock_rdlock, DO(bool held = !pthread_rwlock_rdlock(&shared) && run_in_thread(try_to_read, NULL) == (void *)1; pthread_rwlock_unlock(&shared); held))
CHECK(pthread_rwlock_wrlock, DO(bool held = !pthread_rwlock_wrlock(&shared) && run_in_thread(try_to_read, NULL) == (void *)(EBUSY + 1l); pthread_rwlock_unlock(&shared); held))
CHECK(pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock(&shared) == 0 && !pthread_rwlock_unlock(&shared))
CHECK(pthread_rwlock_trywrlock, DO(pthread_rwlock_rdlock(&shared); bool held = run_in_thread(try_to_write, NULL) == (void *)(EBUSY + 1l); pthread_rwlock_unlock(&shared); held))
CHECK(pthread_rwlock_unlock, DO(pthread_rwlock_wrlock(&shared); pthread_rwlock_unlock(&shared) == 0 && run_in_thread(try_to_write, NULL) == (void *)1))
CHECK(pthread_rwlock_init, DO(pthread_rwlock_t l; memset(&l, 0xAA, sizeof l); !pthread_rwlock_init(&l, NULL) && !pthread_rwlock_wrlock(&l) && !pthread_rwlock_unlock(&l)))
CHECK(pthread_rwlock_destroy, DO(pthread_rwlock_t l; pthread_rwlock_init(&l, NULL); pthread_rwlock_destroy(&l) == 0))
CHECK(pthread_condattr_init, DO(pthread_condattr_t a; pthread_condattr_init(&a) == 0))
CHECK(pthread_condattr_destroy, DO(pthread_condattr_t a; pthread_condattr_init(&a); pthread_condattr_destroy(&a) == 0))
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turns;
static void *wait_for_turn(void *value) {
  pthread_mutex_lock(&counter_lock);
  while (!turns) pthread_cond_wait(&turned, &counter_lock);
  pthread_mutex_unlock(&counter_lock);
  return value;
}
static bool wakes(int (*wake)(pthread_cond_t *), int waiting) {
  pthread_t threads[3];
  turns = 0;
  for (int i = 0; i < waiting; i++) pthread_create(&threads[i], NULL, wait_for_turn, NULL);
  usleep(2000);
  pthread_mutex_lock(&counter_lock);
  turns = 1;
  bool held = wake(&turned) == 0;
  pthread_mutex_unlock(&counter_lock);
  for (int i = 0; i < waiting; i++) held &= pthread_join(threads[i], NULL) == 0;
  return held;
}
CHECK(pthread_cond_wait, wakes(pthread_cond_signal, 1))
CHECK(pthread_cond_signal, wakes(pthread_cond_signal, 1))
CHECK(pthread_cond_broadcast, wakes(pthread_cond_broadcast, 3))
CHECK(pthread_cond_init, DO(pthread_cond_t c; memset(&c, 0xAA, sizeof c); !pthread_cond_init(&c, NULL) && !pthread_cond_signal(&c)))
CHECK(pthread_cond_destroy, DO(pthread_cond_t c; pthread_cond_init(&c, NULL); pthread_cond_signal(&c); pthread_cond_destroy(&c) == 0))
CHECK(pthread_cond_timedwait, DO(struct timespec t; clock_gettime(CLOCK_REALTIME, &t); pthread_mutex_lock(&counter_lock); int e = pthread_cond_timedwait(&turned, &counter_lock, &t); pthread_mutex_unlock(&counter_lock); e == ETIMEDOUT))
CHECK(pthread_cond_timedwait_relative_np, DO(struct timespec t = {0, 2000000}; pthread_mutex_lock(&counter_lock); int e = pthread_cond_timedwait_relative_np(&turned, &counter_lock, &t); pthread_mutex_unlock(&counter_lock); e == ETIMEDOUT))
static pthread_once_t once_control = PTHREAD_ONCE_INIT;
static int made, seen_unmade;
static void make(void) { usleep(3000); made++; }
static void *make_once(void *unused) { pthread_once(&once_control, make); if (!made) seen_unmade = 1; return unused; }
CHECK(pthread_once, DO(pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, make_once, NULL); for (int i = 0; i < 3; i++) pthread_join(t[i], NULL); made == 1 && !seen_unmade))

// ---- mathematics
#define MATH(name, call, value) CHECK(name, SAME(name call, value)) CHECK(name##f, SAME(name##f call, value))
MATH(sin, (1), 0.8414709848) MATH(cos, (1), 0.5403023059) MATH(tan, (1), 1.5574077247) MATH(asin, (0.5), 0.5235987756)
MATH(acos, (0.5), 1.0471975512) MATH(atan, (1), 0.7853981634) MATH(atan2, (1, -1), 2.3561944902) MATH(sinh, (1), 1.1752011936)
MATH(cosh, (1), 1.5430806348) MATH(tanh, (0.5), 0.4621171573) MATH(asinh, (1), 0.8813735870)
CHECK(acosh, SAME(acosh(2), 1.3169578969) && __builtin_isnan(acosh(-100)))
CHECK(acoshf, SAME(acoshf(2), 1.3169578969) && __builtin_isnan(acoshf(-100)))
MATH(atanh, (0.5), 0.5493061443) MATH(exp, (1), 2.7182818285) MATH(exp2, (3.5), 11.3137084990) MATH(expm1, (1e-3), 1.00050016671e-3)
MATH(log, (10), 2.3025850930) MATH(log2, (10), 3.3219280949) MATH(log10, (50), 1.6989700043) MATH(log1p, (1e-3), 9.9950033308e-4)
MATH(pow, (2, 0.5), 1.4142135624) MATH(hypot, (3, 4), 5) MATH(cbrt, (27), 3) MATH(fmod, (-7.5, 2), -1.5) MATH(remainder, (7.5, 2), -0.5)
MATH(erf, (0.5), 0.5204998778) MATH(erfc, (0.5), 0.4795001222) MATH(tgamma, (4.5), 11.6317283966) MATH(lgamma, (4.5), 2.4537365708)
MATH(ldexp, (0.75, 4), 12) MATH(round, (-2.5), -3) MATH(nearbyint, (2.5), 2)
CHECK(frexp, DO(int e; frexp(12, &e) == 0.75 && e == 4))
CHECK(frexpf, DO(int e; frexpf(12, &e) == 0.75f && e == 4))
CHECK(modf, DO(double i; modf(-2.25, &i) == -0.25 && i == -2))
CHECK(modff, DO(float i; modff(-2.25f, &i) == -0.25f && i == -2))
CHECK(nextafter, nextafter(1, 2) == 1 + 0x1p-52)
CHECK(nextafterf, nextafterf(1, 2) == 1 + 0x1p-23f)
CHECK(nexttoward, nexttoward(1, 2.0L) == 1 + 0x1p-52)
CHECK(nexttowardf, nexttowardf(1, 2.0L) == 1 + 0x1p-23f && nexttowardf(1, 1.0L) == 1)

// ---- what ends the process is called by its own entry, below
static void *exit_in_thread(void *unused) { return unused; }
int check_shims(int count, char **arguments) {
  const char *ending = count > 1 ? arguments[1] : "";
  if (TEXT(ending, "abort")) abort();
  if (TEXT(ending, "exit")) exit(7);
  if (TEXT(ending, "_exit")) _exit(8);
  if (TEXT(ending, "__stack_chk_fail")) __stack_chk_fail();
  if (TEXT(ending, "unknown")) return getuid() + !exit_in_thread;
  strcpy(folder, "/tmp/mpsmith-checks-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  for (const Check *check = checks; check; check = check->next) {
    fflush(stdout);
    printf("%s %s\n", check->holds() ? "holds" : "fails", check->name);
  }
  return 0;
}
