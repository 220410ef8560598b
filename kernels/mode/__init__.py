"""The family `mode`: its kernels, and the calls that verify and time them."""
