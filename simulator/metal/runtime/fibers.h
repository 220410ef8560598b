// Stacks of items that wait, each over an inaccessible page, and the way back to the stack that began the dispatch.
#pragma once
#include "stack_switch.h"

// Runs `life` on a fiber, and on every other that is taken meanwhile, until one rests as the last or all are abandoned.
void run_fibers(void (*life)());
// The stack of a fiber at rest: it begins its life, or goes on with it.
void* take_fiber();
// The running fiber has nothing to do: it rests, and `next` goes on.
void rest_fiber(void* next, void* value);
// Nothing is left to do for any fiber.
void rest_last_fiber();
// Leaves the dispatch for good: nothing of the kernel runs any more.
[[noreturn]] void abandon();
bool is_fiber_stack(const void* address);
bool is_fiber_guard_page(const void* address);
