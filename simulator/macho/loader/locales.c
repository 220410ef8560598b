// Characters and locales. There is one locale, "C", as on a Mac in which none is chosen.
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>

#include "loader.h"

enum {
  ALPHA = 0x100,
  CONTROL = 0x200,
  DIGIT = 0x400,
  GRAPH = 0x800,
  LOWER = 0x1000,
  PUNCT = 0x2000,
  SPACE = 0x4000,
  UPPER = 0x8000,
  HEX = 0x10000,
  BLANK = 0x20000,
  PRINT = 0x40000
};

// Darwin's table of classes, of which `isalpha` and so on, compiled into their callers, read the first three fields.
static struct __attribute__((packed)) {
  char magic[8], encoding[32];
  void* functions[2];
  uint32_t invalid, classes[256];
  int32_t lower[256], upper[256];
  uint8_t rest[120];
} table = {.magic = {'R', 'u', 'n', 'e', 'M', 'a', 'g', 'A'}};

__attribute__((constructor)) static void fill_table(void) {
  for (int c = 0; c < 256; c++) {
    int number = isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : 0;
    table.classes[c] = c > 127
        ? 0
        : (isalpha(c) ? ALPHA : 0) | (iscntrl(c) ? CONTROL : 0) | (isdigit(c) ? DIGIT : 0) | (isgraph(c) ? GRAPH : 0) |
            (islower(c) ? LOWER : 0) | (ispunct(c) ? PUNCT : 0) | (isspace(c) ? SPACE : 0) | (isupper(c) ? UPPER : 0) |
            (isxdigit(c) ? HEX : 0) | (isblank(c) ? BLANK : 0) | (isprint(c) ? PRINT : 0) | number;
    table.lower[c] = tolower(c);
    table.upper[c] = toupper(c);
  }
}

SHIM(__maskrune, int, (int c, unsigned long mask)) { return c >= 0 && c < 256 ? table.classes[c] & mask : 0; }
SHIM(__tolower, int, (int c)) { return c >= 0 && c < 256 ? table.lower[c] : c; }
SHIM(__toupper, int, (int c)) { return c >= 0 && c < 256 ? table.upper[c] : c; }

SHIM(newlocale, locale_t, (int mask, const char* name, locale_t base)) {
  (void)mask, (void)base;
  if (!strcmp(name, "C") || !strcmp(name, "POSIX") || !*name) return newlocale(LC_ALL_MASK, "C", NULL);
  errno = ENOENT;
  return NULL;
}
SHIM(freelocale, int, (locale_t locale)) { return freelocale(locale), 0; }
SHIM(setlocale, char*, (int category, const char* name)) {
  (void)category;
  return !name || !*name || !strcmp(name, "C") || !strcmp(name, "POSIX") ? "C" : NULL;
}
// Darwin's char is signed: what the locale does not say is 127 there.
SHIM(localeconv, struct lconv*, (void)) {
  static struct lconv copy;
  copy = *localeconv();
  memset(&copy.int_frac_digits, 127, sizeof copy - offsetof(struct lconv, int_frac_digits));
  return &copy;
}
SHIM(___mb_cur_max, int, (void)) { return 1; }

// A locale is the last argument, in a register that a function without it does not read.
// clang-format off
#define IN_LOCALE(name) OFFER(name##_l, name);
IN_LOCALE(strtod) IN_LOCALE(strtof) IN_LOCALE(mbtowc) IN_LOCALE(btowc) IN_LOCALE(wctob) IN_LOCALE(mbrtowc)
IN_LOCALE(wcrtomb) IN_LOCALE(mbrlen) IN_LOCALE(mbsrtowcs) IN_LOCALE(mbsnrtowcs) IN_LOCALE(wcsnrtombs)
IN_LOCALE(strftime) IN_LOCALE(strxfrm) IN_LOCALE(wcsxfrm)
OFFER(strcoll_l, strcmp);
OFFER(wcscoll_l, wcscmp);
OFFER(__maskrune_l, shim___maskrune);
OFFER(___tolower_l, shim___tolower);
OFFER(___toupper_l, shim___toupper);
OFFER(___mb_cur_max_l, shim____mb_cur_max);
OFFER(localeconv_l, shim_localeconv);
OFFER(_DefaultRuneLocale, &table);
// Darwin's long double is double.
OFFER(strtold, strtod);
OFFER(strtold_l, strtod);
SHIM(nexttoward, double, (double from, double to)) { return nextafter(from, to); }
SHIM(nexttowardf, float, (float from, double to)) { return nexttowardf(from, to); }
OFFER(wcstold, wcstod);
