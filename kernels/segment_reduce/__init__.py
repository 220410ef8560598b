"""The family `segment_reduce`: its kernels, and the calls that verify and time them."""
