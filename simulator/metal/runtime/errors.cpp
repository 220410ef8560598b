// Error messages with the thread and the instruction, and the state of the running item.
#include "errors.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

Dispatch* g_dispatch;
Group g_group;
uint32_t g_item;
bool g_item_known;
uint64_t g_instruction;

// g_instruction relative to where the kernel's library is loaded; 0 if it is elsewhere.
static uint64_t place_in_kernel() {
  Dl_info kernel, instruction;
  if (!g_instruction || !dladdr((void*)g_dispatch->kernel, &kernel) || !dladdr((void*)g_instruction, &instruction) ||
      kernel.dli_fbase != instruction.dli_fbase)
    return 0;
  return g_instruction - (uint64_t)kernel.dli_fbase;
}
void report(const char* format, ...) {
  Dispatch* d = g_dispatch;
  if (d->error_count++ >= kMaxMessages) return;
  size_t used = strlen(d->message);
  if (used + 2 >= d->message_size) return;
  d->places[d->place_count++] = place_in_kernel();
  if (used) d->message[used++] = '\n';
  va_list list;
  va_start(list, format);
  vsnprintf(d->message + used, d->message_size - used, format, list);
  va_end(list);
}
const char* describe_item(char* buffer, size_t size, uint32_t item) {
  const Group& g = g_group;
  if (g_item_known)
    snprintf(
        buffer, size, "thread (%u, %u, %u) of threadgroup (%u, %u, %u)", item % g.threads[0],
        item / g.threads[0] % g.threads[1], item / g.threads[0] / g.threads[1], g.position[0], g.position[1],
        g.position[2]);
  else snprintf(buffer, size, "a thread of threadgroup (%u, %u, %u)", g.position[0], g.position[1], g.position[2]);
  return buffer;
}
