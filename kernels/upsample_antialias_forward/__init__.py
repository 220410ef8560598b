"""The family `upsample_antialias_forward`: its kernels, the cases that verify them, the call that is timed."""
