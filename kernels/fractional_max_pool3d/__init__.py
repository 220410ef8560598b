"""The family `fractional_max_pool3d`: its kernels, the cases that verify them, the call that is timed."""
