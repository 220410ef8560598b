"""Runs a release's compiled Metal kernels (AIR, Apple's LLVM bitcode) on the host."""
