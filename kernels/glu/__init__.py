"""The family `glu`: its kernels, and the calls that verify and time them."""
