// loader [-v] [--names] LIBRARY... -- SYMBOL [ARGUMENT...]
// Maps the libraries in this order, each bound to those before it and to the shims; then calls
// int SYMBOL(int count, char **arguments) of one of them. --names prints the names of the shims instead.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

static void print_names(void) {
  for (const Shim* shim = __start_shims; shim < __stop_shims; shim++) puts(shim->name + 1);
}

int main(int count, char** arguments, char** variables) {
  environment = variables;
  report_crashes();
  int i = 1;
  for (; i < count && strcmp(arguments[i], "--"); i++) {
    if (!strcmp(arguments[i], "-v")) {
      verbose = true;
    } else if (!strcmp(arguments[i], "--names")) {
      print_names();
      return 0;
    } else {
      Image* image = map_image(arguments[i]);
      bind_image(image);
      run_initialisers(image);
    }
  }
  if (i + 1 >= count) fail("name libraries, -- and a symbol");
  char name[256];
  snprintf(name, sizeof name, "_%s", arguments[i + 1]);
  for (int k = image_count - 1; k >= 0; k--) {
    int (*entry)(int, char**) = exported(&images[k], name);
    if (!entry) continue;
    int code = entry(count - i - 1, arguments + i + 1);
    run_thread_destructors();
    exit(code);
  }
  fail("no library exports %s", arguments[i + 1]);
}
