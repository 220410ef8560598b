// Names that nothing here defines. Each gets an address in memory that may not be touched: whoever calls or reads it
// ends the process with a line that names it. Nothing is ever answered with a silent zero.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "loader.h"

enum { MOST = 4096, ROOM = 4096 };

static uint8_t* region;
static const char* names[MOST];
static int count;

void* unknown_symbol(const char* name) {
  if (!region) region = mmap(0, MOST * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) fail("no room for the names that nothing defines");
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return region + (uint64_t)i * ROOM;
  if (count == MOST) fail("the libraries need more than %d names that nothing here defines", MOST);
  if (verbose) fprintf(stderr, "nothing defines %s\n", name);
  names[count] = strdup(name);
  return region + (uint64_t)count++ * ROOM;
}

const char* unknown_symbol_at(const void* address) {
  uint64_t offset = (const uint8_t*)address - region;
  return region && offset < (uint64_t)count * ROOM ? names[offset / ROOM] : NULL;
}

int unknown_symbol_count(void) { return count; }

static void print_place(const char* what, uint64_t address) {
  Image* image = image_of((void*)address);
  if (image)
    fprintf(stderr, "  %s %s+%#llx\n", what, image->path, (unsigned long long)(address - (uint64_t)image->base));
}

static void crashed(int number, siginfo_t* information, void* context) {
  const mcontext_t* machine = &((ucontext_t*)context)->uc_mcontext;
  const char *called = unknown_symbol_at((void*)machine->pc), *used = unknown_symbol_at(information->si_addr);
  if (called) fprintf(stderr, "loader: %s is called, which nothing here defines\n", called + 1);
  else if (used) fprintf(stderr, "loader: %s is read, which nothing here defines\n", used + 1);
  else fprintf(stderr, "loader: signal %d (%s) at address %p\n", number, strsignal(number), information->si_addr);
  print_place("in", machine->pc);
  print_place("called from", machine->regs[30]);
  const uint64_t* frame = (const uint64_t*)machine->regs[29];
  for (int i = 0; i < 10 && frame && !((uint64_t)frame & 7); i++, frame = (const uint64_t*)frame[0])
    print_place("called from", frame[1]);
  fflush(NULL);
  _exit(called || used ? 99 : 98);
}

void report_crashes(void) {
  struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO};
  const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
}
