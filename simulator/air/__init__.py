"""A release's compiled Metal kernels (AIR, Apple's LLVM bitcode), read out of their library and run on the host."""
