"""The family `adaptive_avg_pool3d`: its kernels, and the calls that verify and time them."""
