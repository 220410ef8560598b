// Stacks of waiting items, each above an inaccessible page, and the stack that started the dispatch.
#pragma once
#include "stack_switch.h"

// Runs `life` on a fiber, and on every other that is taken, until the last one rests or all are abandoned.
void run_fibers(void (*life)());
// The stack of a resting fiber, which starts or resumes `life`.
void* take_fiber();
// The running fiber rests, and `next` continues.
void rest_fiber(void* next, void* value);
// The last fiber rests: return from run_fibers.
void rest_last_fiber();
// Abandons the dispatch: the kernel does not continue.
[[noreturn]] void abandon();
bool is_fiber_stack(const void* address);
bool is_fiber_guard_page(const void* address);
