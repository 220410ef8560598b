// The stubs that a kernel calls where it waits, for x86-64 and for AArch64.
#include "stack_switch.h"

#if defined(__x86_64__)
// The kernels call with preserve_none (MSL_WAITS in include/msl/sync.h): arguments in r12, r13; only rbp is kept.
asm(R"(
.text
.macro msl_stub name
.globl \name
.type \name, @function
\name:
  pushq %rbp
  movq %r12, %rdi
.endm
.macro msl_resume
  movq %rax, %rsp
  movq %rdx, %rax
  popq %rbp
  popq %rcx
  jmpq *%rcx
.endm
msl_stub msl_threadgroup_barrier
  movq 8(%rsp), %rsi
  movq %rsp, %rdx
  call wait_at_barrier
  msl_resume
msl_stub msl_simdgroup_barrier
  movq 8(%rsp), %rsi
  movq %rsp, %rdx
  call wait_at_simdgroup_barrier
  msl_resume
msl_stub msl_region_leave
  movq 8(%rsp), %rdi
  movq %rsp, %rsi
  call wait_at_region_end
  msl_resume
msl_stub msl_exchange
  movq %r13, %rsi
  movq 8(%rsp), %rdx
  movq %rsp, %rcx
  call wait_at_exchange
  msl_resume
.globl switch_stack
.hidden switch_stack
.type switch_stack, @function
switch_stack:
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  leaq 1f(%rip), %rax
  pushq %rax
  pushq %rbp
  movq %rsp, (%rdi)
  movq %rsi, %rax
  msl_resume
1:
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rcx
  jmpq *%rcx
)");
#elif defined(__aarch64__)
// The ordinary calling convention: x19 to x30 and d8 to d15 are kept.
asm(R"(
.text
.macro msl_save
  stp x29, x30, [sp, #-160]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
.endm
.macro msl_resume
  mov sp, x0
  mov x0, x1
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #160
  br x30
.endm
.globl msl_threadgroup_barrier
.type msl_threadgroup_barrier, %function
msl_threadgroup_barrier:
  msl_save
  mov x1, x30
  mov x2, sp
  bl wait_at_barrier
  msl_resume
.globl msl_simdgroup_barrier
.type msl_simdgroup_barrier, %function
msl_simdgroup_barrier:
  msl_save
  mov x1, x30
  mov x2, sp
  bl wait_at_simdgroup_barrier
  msl_resume
.globl msl_region_leave
.type msl_region_leave, %function
msl_region_leave:
  msl_save
  mov x0, x30
  mov x1, sp
  bl wait_at_region_end
  msl_resume
.globl msl_exchange
.type msl_exchange, %function
msl_exchange:
  msl_save
  mov x2, x30
  mov x3, sp
  bl wait_at_exchange
  msl_resume
.globl switch_stack
.hidden switch_stack
.type switch_stack, %function
switch_stack:
  msl_save
  mov x9, sp
  str x9, [x0]
  mov x0, x1
  mov x1, x2
  msl_resume
)");
#endif
