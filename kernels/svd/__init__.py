"""The family `svd`: its kernels, the cases that verify them, the call that is timed."""
