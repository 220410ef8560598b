"""The family `upsample_antialias`: its kernels, and the calls that verify and time them."""
