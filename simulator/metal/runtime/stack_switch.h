// Leaves one stack for another. It costs a few nanoseconds, which decides how fast kernels with barriers run.
#pragma once
#include <stdint.h>

// Pushes what must survive on the current stack, stores the stack pointer in *save and goes on where `load` stopped.
#if defined(__x86_64__)
// Inlined: the compiler saves the registers that are in use. A jump instead of a return leaves the CPU's return
// predictions in step, since each item has the same calls below it.
static inline __attribute__((always_inline)) void switch_stack(void** save, void* load) {
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "popq %%rax\n\t"
      "jmpq *%%rax\n"
      "1:"
      : "+D"(save), "+S"(load)
      :
      : "rax", "rbx", "rcx", "rdx", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15");
}
// A stack that starts in `entry`; `top` is a multiple of 64.
static inline void* prime(uintptr_t top, void (*entry)()) {
  void** word = (void**)top;
  *--word = nullptr;  // the stack is aligned in `entry` as after a call
  *--word = (void*)entry;
  return word;
}
#elif defined(__aarch64__)
extern "C" __attribute__((visibility("hidden"))) void switch_stack(void** save, void* load);
enum { kSavedWords = 20 };  // x19 to x30, d8 to d15
asm(R"(
.text
.hidden switch_stack
.globl switch_stack
.type switch_stack, %function
switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
static inline void* prime(uintptr_t top, void (*entry)()) {
  void** word = (void**)top - kSavedWords;
  for (int i = 0; i < kSavedWords; i++) word[i] = nullptr;
  word[11] = (void*)entry;  // x30, where `ret` goes
  return word;
}
#endif
