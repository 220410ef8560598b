"""The family `qr_reflectors`: its kernels, and the calls that verify and time them."""
