// What is wrong with a dispatch, and who did it: the lines of its message.
#pragma once
#include "runtime.h"

// The instruction that the next messages are about; 0 where it is not known.
extern uint64_t g_instruction;
// Adds a line to the message; the first few are kept, all are counted.
void report(const char* format, ...) __attribute__((format(printf, 1, 2)));
// "thread (x, y, z) of threadgroup (x, y, z)", written into `buffer`.
const char* describe_item(char* buffer, size_t size, uint32_t item);
