// The sections of an image. None is one of macOS here.
#pragma once
#include <stdint.h>
struct mach_header_64 { uint32_t magic; };
static inline uint8_t* getsectiondata(const struct mach_header_64*, const char*, const char*, unsigned long*) {
  return nullptr;
}
