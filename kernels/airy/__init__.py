"""The family `airy`: its kernels, and the calls that verify and time them."""
