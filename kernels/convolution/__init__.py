"""The family `convolution`: its kernels, the cases that verify them, the call that is timed."""
