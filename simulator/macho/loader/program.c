// What every part of the loader asks: its settings, its table of shims, and how it ends with an error.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

bool verbose;
char** environment;

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("loader: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  fflush(NULL);
  _Exit(97);
}

void* shim_named(const char* name) {
  for (const Shim* shim = __start_shims; shim < __stop_shims; shim++)
    if (!strcmp(shim->name, name)) return shim->address;
  return NULL;
}
