"""The family `ldl`: its kernels, and the calls that verify and time them."""
