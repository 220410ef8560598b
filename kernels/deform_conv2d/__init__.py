"""The family `shrink`: its kernels, and the calls that verify and time them."""
