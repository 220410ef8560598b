// The sections of an image. A Metal library's is read by its name, with which newLibraryWithData: finds the kernels.
#pragma once
#include <stdint.h>
#include <string.h>
struct mach_header_64 { uint32_t magic; };
static inline uint8_t* getsectiondata(
    const struct mach_header_64*, const char*, const char* name, unsigned long* size) {
  *size = strlen(name);
  return (uint8_t*)strdup(name); // read once in a process
}
