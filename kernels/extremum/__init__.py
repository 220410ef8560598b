"""The family `extremum`: its kernels, and the calls that verify and time them."""
