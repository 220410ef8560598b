// Empty on purpose: the compiler reads msl/kernel.h, which has all of metal_stdlib, before the program.
