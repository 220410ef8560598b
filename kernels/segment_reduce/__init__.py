"""The family `segment_reduce`: its kernels, the cases that verify them, the call that is timed."""
