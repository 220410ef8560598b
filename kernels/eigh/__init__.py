"""The family `eigh`: its kernels, and the calls that verify and time them."""
