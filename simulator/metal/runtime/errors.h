// Error messages of a dispatch.
#pragma once
#include "runtime.h"

// The instruction of the next messages; 0 if unknown.
extern uint64_t g_instruction;
// Adds a message; the first few are kept, all are counted.
void report(const char* format, ...) __attribute__((format(printf, 1, 2)));
// "thread (x, y, z) of threadgroup (x, y, z)", written into `buffer`.
const char* describe_item(char* buffer, size_t size, uint32_t item);
