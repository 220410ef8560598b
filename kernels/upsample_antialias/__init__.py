"""The family `upsample_antialias`: its kernels, the cases that verify them, the call that is timed."""
