"""The family `int_mm`: its kernels, and the calls that verify and time them."""
