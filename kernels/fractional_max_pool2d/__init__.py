"""The family `fractional_max_pool2d`: its kernels, the cases that verify them, the call that is timed."""
