// loader [-v] [--names] LIBRARY... -- SYMBOL [ARGUMENT...]
// Maps the libraries, and binds each in this order to those before it, to the shims, and to those after it; then calls
// int SYMBOL(int count, char **arguments) of one of them. --names prints the names of the shims instead.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "loader.h"

static void print_names(void) {
  for (const Shim* shim = __start_shims; shim < __stop_shims; shim++) puts(shim->name + 1);
}

int main(int count, char** arguments, char** variables) {
  environment = variables;
  prctl(PR_SET_PDEATHSIG, SIGKILL); // an operator that hangs does not outlive who asked for it
  report_crashes();
  int i = 1;
  for (; i < count && strcmp(arguments[i], "--"); i++) {
    if (!strcmp(arguments[i], "-v")) {
      verbose = true;
    } else if (!strcmp(arguments[i], "--names")) {
      print_names();
      return 0;
    } else {
      map_image(arguments[i]);
    }
  }
  for (int k = 0; k < image_count; k++) {
    bind_image(&images[k]);
    run_initialisers(&images[k]);
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
