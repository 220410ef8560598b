"""The family `adaptive_max_pool3d`: its kernels, and the calls that verify and time them."""
