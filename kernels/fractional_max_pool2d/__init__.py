"""The family `fractional_max_pool2d`: its kernels, and the calls that verify and time them."""
