// Files as Darwin's code sees them.
#pragma once
#include <stdint.h>
#include <stdio.h>

// Darwin's `putc` and `getc` are compiled into its callers, and count down these fields before they call a function.
typedef struct {
  void* next;
  int to_read, to_write;
  uint8_t rest[136];
  FILE* file;
} DarwinFile;

FILE* linux_file(DarwinFile* file);
