// The images of a process. None is one of macOS here.
#pragma once
#include <stdint.h>
static inline uint32_t _dyld_image_count(void) { return 0; }
static inline const char* _dyld_get_image_name(uint32_t) { return ""; }
static inline const void* _dyld_get_image_header(uint32_t) { return nullptr; }
