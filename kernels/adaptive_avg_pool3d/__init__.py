"""The family `adaptive_avg_pool3d`: its kernels, the cases that verify them, the call that is timed."""
