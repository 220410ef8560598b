"""The family `upsample_antialias_forward`: its kernels, and the calls that verify and time them."""
