// What libraries ask of the linker: each other's names, sections and places.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"

typedef struct {
  const void *header, *eh_frame;
  uint64_t eh_frame_size;
  const void* unwind_info;
  uint64_t unwind_info_size;
} UnwindSections;

SHIM(_dyld_find_unwind_sections, int, (const void* address, UnwindSections* found)) {
  const Image* image = image_of(address);
  if (!image) return 0;
  *found = (UnwindSections){
      image->base, image->base + image->eh_frame.address, image->eh_frame.size,
      image->base + image->unwind_info.address, image->unwind_info.size};
  if (!image->eh_frame.size) found->eh_frame = NULL;
  if (!image->unwind_info.size) found->unwind_info = NULL;
  return 1;
}
SHIM(_dyld_register_func_for_remove_image, void, (void* function)) { (void)function; } // no library is ever removed
SHIM(_dyld_image_count, uint32_t, (void)) { return image_count; }
SHIM(_dyld_get_image_name, const char*, (uint32_t number)) {
  return number < (uint32_t)image_count ? images[number].path : NULL;
}
SHIM(_dyld_get_image_header, const void*, (uint32_t number)) {
  return number < (uint32_t)image_count ? images[number].base : NULL;
}

SHIM(_NSGetExecutablePath, int, (char* path, uint32_t* size)) {
  char found[4096];
  ssize_t length = readlink("/proc/self/exe", found, sizeof found - 1);
  if (length < 0) return -1;
  found[length] = 0;
  if ((uint32_t)length >= *size) {
    *size = length + 1;
    return -1;
  }
  strcpy(path, found);
  return 0;
}
SHIM(_NSGetEnviron, char***, (void)) { return &environment; }

SHIM(
    getsectiondata,
    const uint8_t*,
    (const uint8_t* header, const char* segment, const char* section, unsigned long* size)) {
  const uint8_t* command = header + 32;
  for (uint32_t i = 0; i < ((const uint32_t*)header)[4]; i++, command += ((const uint32_t*)command)[1]) {
    if (*(const uint32_t*)command != 0x19) continue;
    const uint8_t* entry = command + 72;
    for (uint32_t k = 0; k < *(const uint32_t*)(command + 64); k++, entry += 80) {
      if (strncmp((const char*)entry, section, 16) || strncmp((const char*)entry + 16, segment, 16)) continue;
      *size = *(const uint64_t*)(entry + 40);
      return header + *(const uint64_t*)(entry + 32);
    }
  }
  return NULL;
}

// Darwin's code keeps a chain of frames.
SHIM(backtrace, int, (void** places, int most)) {
  const uint64_t* frame = __builtin_frame_address(0);
  int found = 0;
  while (found < most && frame && !((uint64_t)frame & 7)) {
    const uint64_t* next = (const uint64_t*)frame[0];
    if (!image_of((void*)frame[1]) && found) break;
    places[found++] = (void*)frame[1];
    if (next <= frame) break;
    frame = next;
  }
  return found;
}
SHIM(backtrace_symbols, char**, (void* const* places, int number)) {
  enum { LINE = 192 };
  char** texts = malloc(number * (sizeof *texts + LINE) + 1);
  for (int i = 0; texts && i < number; i++) {
    const Image* image = image_of(places[i]);
    texts[i] = (char*)(texts + number) + i * LINE;
    snprintf(
        texts[i], LINE, "%-3d %s + %llu", i, image ? image->path : "?",
        (unsigned long long)((const uint8_t*)places[i] - (image ? image->base : NULL)));
  }
  return texts;
}

typedef struct {
  const char* path;
  const void* base;
  const char* symbol;
  const void* symbol_address;
} DarwinDlInfo;
SHIM(dladdr, int, (const void* address, DarwinDlInfo* found)) {
  const Image* image = image_of(address);
  if (!image) return 0;
  *found = (DarwinDlInfo){image->path, image->base, NULL, NULL};
  return 1;
}

static __thread char problem[256];
static __thread bool has_problem;
SHIM(dlopen, void*, (const char* path, int flags)) {
  (void)flags;
  if (!path) return (void*)-2;
  for (int i = 0; i < image_count; i++)
    if (!strcmp(images[i].path, path)) return &images[i];
  snprintf(problem, sizeof problem, "dlopen(%s): the loader opens no further libraries", path);
  has_problem = true;
  return NULL;
}
SHIM(dlsym, void*, (void* library, const char* name)) {
  char symbol[256];
  snprintf(symbol, sizeof symbol, "_%s", name);
  void* found = NULL;
  if ((int64_t)library < 0) {
    for (int i = 0; i < image_count && !found; i++) found = exported(&images[i], symbol);
    if (!found) found = shim_named(symbol);
  } else {
    found = exported(library, symbol);
  }
  has_problem = !found;
  if (!found) snprintf(problem, sizeof problem, "dlsym(%s): symbol not found", name);
  return found;
}
SHIM(dlerror, const char*, (void)) {
  const char* found = has_problem ? problem : NULL;
  has_problem = false;
  return found;
}
SHIM(dlclose, int, (void* library)) {
  (void)library;
  return 0;
}
